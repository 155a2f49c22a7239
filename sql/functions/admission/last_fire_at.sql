-- last_fire_at: the latest of the firings that are due.
--
-- Promises: the last moment up to p_until at which the schedule fires, given that it does at p_known. By halves, so that a
--           year of missed minutes costs some twenty looks.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.last_fire_at(
    p_schedule counterfoil.schedules, p_known timestamptz, p_until timestamptz
)
returns timestamptz
language plpgsql
stable
parallel safe
called on null input
security invoker
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_fires timestamptz := p_known;
    v_none_after timestamptz := p_until;
    v_middle timestamptz;
    v_at timestamptz;
begin
    while v_none_after - v_fires >= interval '1 minute' loop
        v_middle := v_fires + (v_none_after - v_fires) / 2;
        v_at := counterfoil.next_fire_at(p_schedule, v_middle);
        if v_at <= p_until then
            v_fires := v_at;
        else
            v_none_after := v_middle;
        end if;
    end loop;
    v_at := counterfoil.next_fire_at(p_schedule, v_fires);
    return case when v_at <= p_until then v_at else v_fires end;
end
$function$;

comment on function counterfoil.last_fire_at(counterfoil.schedules, timestamptz, timestamptz) is
'Last moment up to p_until at which the schedule fires, given that it does at p_known. Private.';

revoke all on function counterfoil.last_fire_at(counterfoil.schedules, timestamptz, timestamptz) from public;
