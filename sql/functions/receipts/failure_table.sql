-- failure_table: how failures look over HTTP; the work behind failure_classes.
--
-- Promises: see failure_classes.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.failure_table()
returns table (
    sqlstate_prefix text,
    status integer,
    code text,
    retryable boolean,
    retry_after_ms integer,
    error text
)
language sql
immutable
parallel safe
called on null input
security invoker
as $function$
    select f.*
    from (values
        ('RL001', 400, 'invalid_argument', false, null::integer, null::text),
        ('RL002', 404, 'not_found', false, null, null),
        ('RL003', 409, 'identity_conflict', false, null, null),
        ('RL004', 409, 'lease_lost', true, null, null),
        ('RL005', 409, 'invalid_state', false, null, null),
        ('RL006', 503, 'scheduler_capacity', true, 1000, '%s is delayed: there is no capacity now.'),
        ('RL007', 429, 'quota_exceeded', true, 1000, null),
        ('RL008', 413, 'payload_too_large', false, null, null),
        ('RL009', 503, 'schema_version', false, null, null),
        ('P0001', 422, 'invalid_projection', false, null, null),
        -- No connection is free: in the server (class 53), or in the gateway's own pool, which reports 53300 too.
        ('53', 503, 'runtime_postgres_admission_backpressure', true, 1000, '%s waits for database capacity.'),
        -- Away, restarting, read-only after a failover, or a conflict that a repeat resolves.
        ('08', 503, 'upstream_service_unavailable', true, 1000, '%s cannot reach its database just now.'),
        ('57P', 503, 'upstream_service_unavailable', true, 1000, '%s cannot reach its database just now.'),
        ('57014', 503, 'upstream_service_unavailable', true, 1000, '%s took too long.'),
        ('25006', 503, 'upstream_service_unavailable', true, 1000, '%s cannot reach its database just now.'),
        ('25P03', 503, 'upstream_service_unavailable', true, 1000, '%s took too long.'),
        ('40', 503, 'upstream_service_unavailable', true, 1000, '%s met another transaction; repeat it.'),
        ('55P03', 503, 'upstream_service_unavailable', true, 1000, '%s took too long.'),
        -- JSON text that PostgreSQL cannot hold, such as an escaped U+0000.
        ('22P05', 400, 'invalid_argument', false, null, 'The request holds a character that cannot be stored.'),
        ('22021', 400, 'invalid_argument', false, null, 'The request holds a character that cannot be stored.'),
        ('22P02', 400, 'invalid_argument', false, null, 'The request holds a malformed value.')
    ) as f (sqlstate_prefix, status, code, retryable, retry_after_ms, error)
$function$;

comment on function counterfoil.failure_table() is
'How failures look over HTTP, by SQLSTATE; the work behind failure_classes. Private.';

revoke all on function counterfoil.failure_table() from public;
