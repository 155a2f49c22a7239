-- next_fire_at: when a schedule fires next.
--
-- Promises: the first moment after p_after, in whole minutes; null when there is none in fifty years. The calendar and the
--           clock changes are those of the schedule's time zone.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.next_fire_at(p_schedule counterfoil.schedules, p_after timestamptz)
returns timestamptz
language plpgsql
stable
parallel safe
called on null input
security invoker
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_zone text := (p_schedule).time_zone;
    v_shown timestamp := p_after at time zone v_zone;
    -- The clock may have gone back over midnight.
    v_from date := v_shown::date - 1;
    v_month date;
    v_day date;
    v_at timestamptz;
begin
    for v_month in
        select m.first::date
        from generate_series(
            date_trunc('month', v_from::timestamp), v_from::timestamp + interval '50 years', interval '1 month'
        ) as m (first)
        where extract(month from m.first) = any ((p_schedule).months)
    loop
        for v_day in
            select d.day::date
            from generate_series(
                greatest(v_month, v_from)::timestamp, v_month::timestamp + interval '1 month - 1 day', interval '1 day'
            ) as d (day)
            where counterfoil.fires_on(p_schedule, d.day::date)
        loop
            if
                counterfoil.utc_offset((v_day::timestamp at time zone v_zone) - interval '3 hours', v_zone)
                = counterfoil.utc_offset(((v_day + 1)::timestamp at time zone v_zone) + interval '3 hours', v_zone)
            then
                select min(t.shown) at time zone v_zone into v_at
                from unnest((p_schedule).hours) as h (hour)
                cross join unnest((p_schedule).minutes) as n (minute)
                cross join lateral (
                    select v_day::timestamp + make_interval(hours => h.hour::integer, mins => n.minute::integer) as shown
                ) as t
                where t.shown > v_shown;
            else
                v_at := counterfoil.fire_times_of_shift(p_schedule, v_day, p_after);
            end if;
            if v_at is not null then
                return v_at;
            end if;
        end loop;
    end loop;
    return null;
end
$function$;

comment on function counterfoil.next_fire_at(counterfoil.schedules, timestamptz) is
'First moment after p_after at which the schedule fires; null when there is none in fifty years. Private.';

revoke all on function counterfoil.next_fire_at(counterfoil.schedules, timestamptz) from public;
