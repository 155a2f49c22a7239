-- schedule_fire_times: when a schedule will fire.
--
-- Promises: the next p_limit (1 to 100) moments, paused or not; fewer when there are no more.
-- Locks:    nothing.
-- Raises:   RL001; RL002 schedule_not_found.
-- Since:    1

create or replace function counterfoil.schedule_fire_times(p_org_id text, p_name text, p_limit integer default 10)
returns setof timestamptz
language plpgsql
stable
parallel safe
called on null input
security definer
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_schedule counterfoil.schedules;
    v_at timestamptz := clock_timestamp();
begin
    perform counterfoil.check_id(p_org_id, 'p_org_id');
    perform counterfoil.check_id(p_name, 'p_name');
    perform counterfoil.check_limit(p_limit, 1, 100, 'p_limit');
    select s.* into v_schedule
    from counterfoil.schedules as s
    where s.org_id = p_org_id and s.name = p_name;
    if not found then
        perform counterfoil.raise_not_found(
            format('There is no schedule %s in this org.', p_name), 'schedule_not_found', 'Look at list_schedules().'
        );
    end if;
    for v_turn in 1..p_limit loop
        v_at := counterfoil.next_fire_at(v_schedule, v_at);
        exit when v_at is null;
        return next v_at;
    end loop;
end
$function$;

comment on function counterfoil.schedule_fire_times(text, text, integer) is
'Next p_limit (1 to 100) moments at which a schedule fires.';

revoke all on function counterfoil.schedule_fire_times(text, text, integer) from public;
