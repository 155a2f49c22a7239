-- hold_open_attempt: locks the attempt of a run that has not ended.
--
-- Promises: the running or suspended attempt, locked; null when the run has none.
-- Locks:    the attempt; the caller holds the run.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.hold_open_attempt(p_org_id text, p_run_id text)
returns counterfoil.attempts
language plpgsql
volatile
parallel unsafe
strict
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $function$
declare
    v_attempt counterfoil.attempts;
begin
    select a.* into v_attempt
    from counterfoil.attempts as a
    where a.org_id = p_org_id and a.run_id = p_run_id and a.status in ('running', 'waiting')
    for no key update;
    return v_attempt;
end
$function$;

comment on function counterfoil.hold_open_attempt(text, text) is
'Locks the running or suspended attempt of a run that the caller holds; null when it has none. Private.';

revoke all on function counterfoil.hold_open_attempt(text, text) from public;
