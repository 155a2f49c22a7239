-- hold_attempt: locks one attempt of a run that the caller holds.
--
-- Promises: the attempt, locked.
-- Locks:    the attempt.
-- Raises:   RL002 attempt_not_found.
-- Since:    1

create or replace function counterfoil.hold_attempt(p_org_id text, p_run_id text, p_attempt integer)
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
    where a.org_id = p_org_id and a.run_id = p_run_id and a.attempt = p_attempt
    for no key update;
    if not found then
        perform counterfoil.raise_not_found(
            format('Run %s has no attempt %s.', p_run_id, p_attempt), 'attempt_not_found', 'Check p_attempt.'
        );
    end if;
    return v_attempt;
end
$function$;

comment on function counterfoil.hold_attempt(text, text, integer) is
'Locks one attempt of a run that the caller holds; RL002 attempt_not_found. Private.';

revoke all on function counterfoil.hold_attempt(text, text, integer) from public;
