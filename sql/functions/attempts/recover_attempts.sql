-- recover_attempts: does what time demands, for up to p_limit (1 to 1000) runs of a release lane.
--
-- Promises: one row for each run it changed: requeued, failed, timed_out (lease or attempt's time over), cancelled (grace
--           time over) or deadline_exceeded. Reads, by index, only active runs of the lane whose lease, deadline or
--           grace time has passed. Any number of workers may call it at once; each run is recovered once.
-- Locks:    run by run what recover_run() takes, skipping what is locked: it waits for nobody.
-- Raises:   RL001.
-- Since:    1

create or replace function counterfoil.recover_attempts(p_limit integer, p_release_lane text)
returns table (org_id text, run_id text, attempt integer, outcome text)
language plpgsql
volatile
parallel unsafe
called on null input
security definer
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_lane text := coalesce(p_release_lane, 'default');
begin
    perform counterfoil.check_limit(p_limit, 1, 1000, 'p_limit');
    perform counterfoil.check_id(v_lane, 'p_release_lane');
    return query
    select r.org_id, r.run_id, r.attempt, r.outcome
    from counterfoil.recover_due(p_limit, v_lane) as r;
end
$function$;

comment on function counterfoil.recover_attempts(integer, text) is
'Recovers up to p_limit (1 to 1000) runs of a release lane whose lease, time-out, deadline or grace time is over: one row each (org_id, run_id, attempt, outcome).';

revoke all on function counterfoil.recover_attempts(integer, text) from public;
