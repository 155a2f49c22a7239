-- delete_schedule: forgets a schedule.
--
-- Promises: true, and it never fires again; false when there was none. Runs that it launched stay.
-- Locks:    the schedule.
-- Raises:   RL001.
-- Since:    1

create or replace function counterfoil.delete_schedule(p_org_id text, p_name text)
returns boolean
language plpgsql
volatile
parallel unsafe
called on null input
security definer
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_now timestamptz := clock_timestamp();
begin
    perform counterfoil.check_id(p_org_id, 'p_org_id');
    perform counterfoil.check_id(p_name, 'p_name');
    delete from counterfoil.schedules as s
    where s.org_id = p_org_id and s.name = p_name;
    if not found then
        return false;
    end if;
    perform counterfoil.record_audit(
        p_org_id, 'delete_schedule', jsonb_build_object('schedule', p_name), null, '{}'::jsonb, v_now
    );
    return true;
end
$function$;

comment on function counterfoil.delete_schedule(text, text) is
'Deletes a schedule; false when there was none. Its runs stay.';

revoke all on function counterfoil.delete_schedule(text, text) from public;
