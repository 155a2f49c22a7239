-- hold_run: locks a run.
--
-- Promises: the run, locked. With p_wait false it waits for nobody, and is null when the run was taken or is gone.
-- Locks:    the run, after hold_before_run() where the status is to change.
-- Raises:   RL002 run_not_found (p_wait only).
-- Since:    1

create or replace function counterfoil.hold_run(p_org_id text, p_run_id text, p_wait boolean)
returns counterfoil.runs
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
    v_run counterfoil.runs;
begin
    if p_wait then
        select r.* into v_run
        from counterfoil.runs as r
        where r.org_id = p_org_id and r.run_id = p_run_id
        for no key update;
        if not found then
            perform counterfoil.raise_run_not_found(p_run_id);
        end if;
    else
        select r.* into v_run
        from counterfoil.runs as r
        where r.org_id = p_org_id and r.run_id = p_run_id
        for no key update skip locked;
    end if;
    return v_run;
end
$function$;

comment on function counterfoil.hold_run(text, text, boolean) is
'Locks a run and gives it; null when p_wait is false and somebody else has it. Private.';

revoke all on function counterfoil.hold_run(text, text, boolean) from public;
