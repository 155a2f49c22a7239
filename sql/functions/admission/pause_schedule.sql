-- pause_schedule: stops a schedule from firing.
--
-- Promises: one row; it does not fire until it is resumed, and what falls in between is not caught up. A firing that
--           waits is dropped. Runs that it launched go on.
-- Locks:    the schedule.
-- Raises:   RL001; RL002 schedule_not_found.
-- Since:    1

create or replace function counterfoil.pause_schedule(p_org_id text, p_name text)
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
begin
    if v_schedule.paused_at is not null then
        return query select 'already_paused'::text, v_schedule.next_fire_at;
        return;
    end if;
    update counterfoil.schedules as s
    set paused_at = v_now, look_at = null, next_fire_at = null, buffered_at = null
    where s.org_id = p_org_id and s.name = p_name;
    perform counterfoil.record_audit(
        p_org_id, 'pause_schedule', jsonb_build_object('schedule', p_name), null, '{}'::jsonb, v_now
    );
    return query select 'paused'::text, null::timestamptz;
end
$function$;

comment on function counterfoil.pause_schedule(text, text) is
'Stops a schedule from firing: one row, outcome paused or already_paused.';

revoke all on function counterfoil.pause_schedule(text, text) from public;
