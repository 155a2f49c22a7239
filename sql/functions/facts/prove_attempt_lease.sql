-- prove_attempt_lease: refuses a write of a worker whose attempt is not the run's live one.
--
-- Promises: returns only while p_attempt is the run's latest (p_latest), runs, and p_lease_id is its lease and has not
--           lapsed at p_now. It stays so until the transaction ends: whoever changes it takes the run's row first.
-- Locks:    the caller holds the run's row; the attempt, for share, where it is refused.
-- Raises:   RL004 attempt_lease_not_current; 40001 where it was renewed after the transaction's snapshot.
-- Since:    1

create or replace function counterfoil.prove_attempt_lease(
    p_org_id text,
    p_run_id text,
    p_attempt integer,
    p_lease_id text,
    p_latest integer,
    p_now timestamptz
)
returns void
language plpgsql
volatile
parallel unsafe
called on null input
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $function$
begin
    if p_attempt = p_latest and exists (
        select
        from counterfoil.attempts as a
        where
            a.org_id = p_org_id and a.run_id = p_run_id and a.attempt = p_attempt
            and a.status = 'running' and a.lease_id = p_lease_id and a.lease_expires_at > p_now
    ) then
        return;
    end if;
    -- A heartbeat renews without the run's row: a snapshot from before it must not read that as a loss.
    perform from counterfoil.attempts as a
    where a.org_id = p_org_id and a.run_id = p_run_id and a.attempt = p_attempt and p_attempt = p_latest
    for share;
    perform counterfoil.raise_lease_lost(
        'The attempt''s lease is not current.', 'attempt_lease_not_current',
        'Stop this attempt; another one has taken over or will.'
    );
end
$function$;

comment on function counterfoil.prove_attempt_lease(text, text, integer, text, integer, timestamptz) is
'Refuses (RL004) an attempt that is not the run''s latest, running under this live lease; the caller holds the run''s row. Private.';

revoke all on function counterfoil.prove_attempt_lease(text, text, integer, text, integer, timestamptz) from public;
