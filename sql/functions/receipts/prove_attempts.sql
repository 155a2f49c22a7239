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
as $function$
declare
    v_now timestamptz;
    v_detached boolean;
begin
    -- How look-ups are planned is up to the callers, whose settings hold here too.
    select r.wait_kind is not distinct from 'detached_runner'
    into v_detached
    from counterfoil.runs as r
    where r.org_id = p_org_id and r.run_id = p_run_id;
    if not found then
        return;
    end if;

    v_now := clock_timestamp();
    if exists (
        select
        from unnest(p_attempts) as p (attempt)
        left join lateral (
            select a.status, a.lease_expires_at, a.runner_terminal_at
            from counterfoil.attempts as a
            where a.org_id = p_org_id and a.run_id = p_run_id and a.attempt = p.attempt
            limit 1
        ) as h on true
        where
            not coalesce(
                (h.status = 'running' and h.lease_expires_at > v_now)
                or (h.status = 'waiting' and v_detached and h.runner_terminal_at is null),
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
