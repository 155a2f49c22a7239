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
    error text,
    hint text
)
language sql
immutable
parallel safe
called on null input
security invoker
as $function$
    select
        f.sqlstate_prefix, f.status, f.code, f.retryable, f.retry_after_ms, f.error,
        coalesce(f.hint, 'Try again after retry_after_ms milliseconds.')
    from (values
        ('RL001', 400, 'invalid_argument', false, null::integer, null::text, 'Correct what detail names, then send the request again.'),
        ('RL002', 404, 'not_found', false, null, null, 'Check the ids, and that they are of the token''s org.'),
        ('RL003', 409, 'identity_conflict', false, null, null, 'Repeat the first request unchanged, or choose another id.'),
        ('RL004', 409, 'lease_lost', true, null, null, 'Stop working under this lease, and claim again.'),
        ('RL005', 409, 'invalid_state', false, null, null, 'Read the present state, and do what it allows.'),
        ('RL006', 503, 'scheduler_capacity', true, 1000, '%s is delayed: there is no capacity now.', null),
        ('RL007', 429, 'quota_exceeded', true, 1000, null, 'Try again after retry_after_ms milliseconds, or have the limit raised.'),
        ('RL008', 413, 'payload_too_large', false, null, null, 'Send less, or have the setting raised that limits it.'),
        ('RL009', 503, 'schema_version', false, null, null, 'Install a gateway and a schema that fit each other.'),
        ('P0001', 422, 'invalid_projection', false, null, null, 'Correct the fact that detail names; a repeat changes nothing.'),
        -- No connection is free: in the server (class 53), or in the gateway's own pool, which reports 53300 too.
        (
            '53', 503, 'runtime_postgres_admission_backpressure', true, 1000, '%s waits for database capacity.',
            'Try again after retry_after_ms milliseconds, and send less at once.'
        ),
        -- Away, restarting, read-only after a failover, or a conflict that a repeat resolves. Without a hint of its own: wait.
        ('08', 503, 'upstream_service_unavailable', true, 1000, '%s cannot reach its database just now.', null),
        ('57P', 503, 'upstream_service_unavailable', true, 1000, '%s cannot reach its database just now.', null),
        ('57014', 503, 'upstream_service_unavailable', true, 1000, '%s took too long.', null),
        ('25006', 503, 'upstream_service_unavailable', true, 1000, '%s cannot reach its database just now.', null),
        ('25P03', 503, 'upstream_service_unavailable', true, 1000, '%s took too long.', null),
        ('40', 503, 'upstream_service_unavailable', true, 1000, '%s met another transaction; repeat it.', null),
        ('55P03', 503, 'upstream_service_unavailable', true, 1000, '%s took too long.', null),
        -- JSON text that PostgreSQL cannot hold, such as an escaped U+0000, and whatever else it cannot hold: all came with the request.
        (
            '22P05', 400, 'invalid_argument', false, null, 'The request holds a character that cannot be stored.',
            'Leave U+0000 and lone surrogates out, or encode them.'
        ),
        (
            '22021', 400, 'invalid_argument', false, null, 'The request holds a character that cannot be stored.',
            'Leave U+0000 and lone surrogates out, or encode them.'
        ),
        (
            '22P02', 400, 'invalid_argument', false, null, 'The request holds a malformed value.',
            'Compare the request with /openapi.json.'
        ),
        (
            '22', 400, 'invalid_argument', false, null, 'The request holds a value that cannot be stored.',
            'Compare the request with /openapi.json.'
        ),
        (
            '54', 400, 'invalid_argument', false, null, 'The request holds a value that cannot be stored.',
            'Send smaller values, nested less deep.'
        )
    ) as f (sqlstate_prefix, status, code, retryable, retry_after_ms, error, hint)
$function$;

comment on function counterfoil.failure_table() is
'How failures look over HTTP, by SQLSTATE; the work behind failure_classes. Private.';

revoke all on function counterfoil.failure_table() from public;
