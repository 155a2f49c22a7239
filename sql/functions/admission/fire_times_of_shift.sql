-- fire_times_of_shift: when a schedule fires on a day around which the clocks are changed.
--
-- Promises: the first moment after p_after on that day; null for none. Where the schedule follows every real hour, each
--           moment at which the clock shows a fitting time counts, twice if it is shown twice, never if it is not shown.
--           Else each fitting time of the calendar counts once: the first time if it is shown twice, right after the gap if
--           it is not shown at all.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.fire_times_of_shift(
    p_schedule counterfoil.schedules, p_day date, p_after timestamptz
)
returns timestamptz
language sql
stable
parallel safe
called on null input
security invoker
set search_path = pg_catalog, pg_temp
as $function$
    with read as materialized (
        -- Of two readings of a time PostgreSQL takes the later; in a gap it goes on with the clock from before.
        select t.shown, m.later, m.later at time zone (p_schedule).time_zone as shown_later, m.later - s.shift as earlier
        from unnest((p_schedule).hours) as h (hour)
        cross join unnest((p_schedule).minutes) as n (minute)
        cross join lateral (
            select p_day::timestamp + make_interval(hours => h.hour::integer, mins => n.minute::integer) as shown
        ) as t
        cross join lateral (select t.shown at time zone (p_schedule).time_zone as later) as m
        cross join lateral (
            select
                counterfoil.utc_offset(m.later - interval '1 day', (p_schedule).time_zone)
                - counterfoil.utc_offset(m.later, (p_schedule).time_zone) as shift
        ) as s
    ),

    moments as (
        select
            case when r.shown_later = r.shown then r.later end as later,
            case when r.earlier < r.later and r.earlier at time zone (p_schedule).time_zone = r.shown then r.earlier end as earlier,
            case
                when r.shown_later > r.shown and not (p_schedule).every_real_hour then (
                    select min(g.at)
                    from generate_series(r.later - (r.shown_later - r.shown), r.later, interval '1 minute') as g (at)
                    where counterfoil.utc_offset(g.at, (p_schedule).time_zone)
                        = counterfoil.utc_offset(r.later, (p_schedule).time_zone)
                )
            end as after_gap
        from read as r
    )

    select min(f.at)
    from moments as m
    cross join lateral (
        select coalesce(m.earlier, m.later, m.after_gap) as at
        union all
        select m.later where (p_schedule).every_real_hour
    ) as f
    where f.at > p_after
$function$;

comment on function counterfoil.fire_times_of_shift(counterfoil.schedules, date, timestamptz) is
'First moment after p_after at which the schedule fires on a day around which its clocks are changed. Private.';

revoke all on function counterfoil.fire_times_of_shift(counterfoil.schedules, date, timestamptz) from public;
