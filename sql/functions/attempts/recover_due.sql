-- recover_due: does what time demands, for up to p_limit runs of a release lane.
--
-- Promises: one row for each run it changed: requeued, failed, timed_out (lease or attempt's time over), cancelled (grace
--           time over) or deadline_exceeded. Reads, by index, only active runs of the lane whose lease, deadline or
--           grace time has passed. Any number of workers may call it at once; each run is recovered once.
-- Locks:    run by run what recover_run() takes, skipping what is locked: it waits for nobody.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.recover_due(p_limit integer, p_release_lane text)
returns table (org_id text, run_id text, attempt integer, outcome text)
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
declare
    v_now timestamptz := clock_timestamp();
    v_due record;
begin
    for v_due in
        select d.org_id, d.run_id, r.attempt, r.outcome
        from (
            select u.org_id, u.run_id
            from (
                (
                    select a.org_id, a.run_id
                    from counterfoil.attempts as a
                    where a.release_lane = p_release_lane and a.lease_expires_at > '-infinity' and a.lease_expires_at <= v_now
                    order by a.lease_expires_at
                    limit p_limit
                )
                union all
                (
                    select e.org_id, e.run_id
                    from counterfoil.runs as e
                    where e.release_lane = p_release_lane and e.ended_at is null and e.deadline_at <= v_now
                    order by e.deadline_at
                    limit p_limit
                )
                union all
                (
                    select c.org_id, c.run_id
                    from counterfoil.runs as c
                    where c.release_lane = p_release_lane and c.ended_at is null and c.cancel_deadline_at <= v_now
                    order by c.cancel_deadline_at
                    limit p_limit
                )
            ) as u
            group by u.org_id, u.run_id
            limit p_limit
        ) as d
        cross join lateral counterfoil.recover_run(d.org_id, d.run_id) as r
        where r.outcome is not null
    loop
        org_id := v_due.org_id;
        run_id := v_due.run_id;
        attempt := v_due.attempt;
        outcome := v_due.outcome;
        return next;
    end loop;
end
$function$;

comment on function counterfoil.recover_due(integer, text) is
'Recovers up to p_limit runs of a release lane whose lease, time-out, deadline or grace time is over: one row each (org_id, run_id, attempt, outcome). Private.';

revoke all on function counterfoil.recover_due(integer, text) from public;
