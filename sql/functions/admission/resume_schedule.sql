-- resume_schedule: lets a paused schedule fire again.
--
-- Promises: one row; it fires from now on, and what fell in the pause is not caught up.
-- Locks:    the schedule.
-- Raises:   RL001; RL002 schedule_not_found.
-- Since:    1

create or replace function counterfoil.resume_schedule(p_org_id text, p_name text)
returns table (outcome text, next_fire_at timestamptz)
language plpgsql
volatile
parallel unsafe
called on null input
security definer
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_schedule counterfoil.schedules := counterfoil.hold_schedule(p_org_id, p_name);
    v_now timestamptz := clock_timestamp();
    v_next timestamptz;
begin
    if v_schedule.paused_at is null then
        return query select 'already_active'::text, v_schedule.next_fire_at;
        return;
    end if;
    v_next := counterfoil.next_fire_at(v_schedule, v_now);
    update counterfoil.schedules as s
    set paused_at = null, look_at = v_next, next_fire_at = v_next
    where s.org_id = p_org_id and s.name = p_name;
    perform counterfoil.record_audit(
        p_org_id, 'resume_schedule', jsonb_build_object('schedule', p_name), null, '{}'::jsonb, v_now
    );
    return query select 'active'::text, v_next;
end
$function$;

comment on function counterfoil.resume_schedule(text, text) is
'Lets a paused schedule fire again, from now on: one row, outcome active or already_active, with the next firing.';

revoke all on function counterfoil.resume_schedule(text, text) from public;
