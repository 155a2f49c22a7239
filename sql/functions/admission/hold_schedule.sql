-- hold_schedule: locks a schedule.
--
-- Promises: its row, locked until the transaction ends.
-- Locks:    the schedule; before anything of admission.
-- Raises:   RL001; RL002 schedule_not_found.
-- Since:    1

create or replace function counterfoil.hold_schedule(p_org_id text, p_name text)
returns counterfoil.schedules
language plpgsql
volatile
parallel unsafe
called on null input
security invoker
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_schedule counterfoil.schedules;
begin
    perform counterfoil.check_id(p_org_id, 'p_org_id');
    perform counterfoil.check_id(p_name, 'p_name');
    select s.* into v_schedule
    from counterfoil.schedules as s
    where s.org_id = p_org_id and s.name = p_name
    for no key update;
    if not found then
        perform counterfoil.raise_not_found(
            format('There is no schedule %s in this org.', p_name), 'schedule_not_found', 'Look at list_schedules().'
        );
    end if;
    return v_schedule;
end
$function$;

comment on function counterfoil.hold_schedule(text, text) is
'Locks a schedule and answers its row. Private.';

revoke all on function counterfoil.hold_schedule(text, text) from public;
