-- admit_launch: admits one launch.
--
-- Promises: one row. The run is queued with its run.created fact in one transaction (admitted), or exists with the same
--           identity and nothing is written (replayed). status is the run's present status.
-- Locks:    admission_counters where limits apply, then concurrency_keys, then the new run.
-- Raises:   RL001, RL008 (DETAIL: p_launch.field); RL002 parent_run_not_found; RL003 (DETAIL: the fields that differ);
--           RL006 and RL007 when a limit has no room.
-- Since:    1

create or replace function counterfoil.admit_launch(p_launch jsonb)
returns table (org_id text, run_id text, outcome text, status text)
language plpgsql
volatile
parallel unsafe
called on null input
security definer
set search_path = pg_catalog, pg_temp
as $function$
begin
    return query
    select a.org_id, a.run_id, a.outcome, a.status
    from counterfoil.admit(jsonb_build_array(p_launch), true) as a;
end
$function$;

comment on function counterfoil.admit_launch(jsonb) is
'Admits one launch document: one row (org_id, run_id, outcome, status), outcome admitted or replayed. RL003 when the run exists with another launch; RL006, RL007 when a limit has no room.';

revoke all on function counterfoil.admit_launch(jsonb) from public;
