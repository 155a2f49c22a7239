-- prove_attempts: refuses writes of attempts that do not hold their run any more.
--
-- Promises: returns only when each of p_attempts is the run's live attempt, by lease, or by being parked behind a detached
--           runner that still works. A run that this database does not execute has no attempts to prove.
-- Locks:    nothing. Callers hold their receipts' rows, and a newer attempt needs those to write.
-- Raises:   RL004 attempt_lease_not_current.
-- Since:    1

create or replace function counterfoil.prove_attempts(p_org_id text, p_run_id text, p_attempts integer[])
returns void
language plpgsql
stable
parallel safe
called on null input
security invoker
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
set enable_hashjoin = off
set enable_mergejoin = off
as $function$
declare
    v_now timestamptz := clock_timestamp();
begin
    if exists (
        select
        from counterfoil.runs as r
        cross join unnest(p_attempts) as p (attempt)
        left join counterfoil.attempts as a
            on a.org_id = p_org_id and a.run_id = p_run_id and a.attempt = p.attempt
        where
            r.org_id = p_org_id and r.run_id = p_run_id
            and not coalesce(
                (a.status = 'running' and a.lease_expires_at > v_now)
                or (a.status = 'waiting' and r.wait_kind = 'detached_runner' and a.runner_terminal_at is null),
                false
            )
    ) then
        perform counterfoil.raise_lease_lost(
            'The attempt does not hold its run any more.', 'attempt_lease_not_current',
            'Stop working on this run: its lease lapsed, was replaced, or the run has ended.'
        );
    end if;
end
$function$;

comment on function counterfoil.prove_attempts(text, text, integer[]) is
'Refuses (RL004 attempt_lease_not_current) unless every attempt holds the run; runs unknown here pass. Private.';

revoke all on function counterfoil.prove_attempts(text, text, integer[]) from public;
