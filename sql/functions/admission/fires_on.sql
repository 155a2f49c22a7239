-- fires_on: whether a schedule fires on a day.
--
-- Promises: true when month, day of the month and weekday fit, as cron has it.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.fires_on(p_schedule counterfoil.schedules, p_day date)
returns boolean
language sql
immutable
parallel safe
called on null input
security invoker
as $function$
    select
        f.month = any ((p_schedule).months)
        and case when (p_schedule).day_and_weekday then f.fits_day and f.fits_weekday else f.fits_day or f.fits_weekday end
    from (
        select
            d.month,
            d.day = any ((p_schedule).days)
            or ((p_schedule).last_day and d.day = d.last)
            or ((p_schedule).last_working_day and d.day = d.last - case d.last_weekday when 6 then 1 when 0 then 2 else 0 end)
                as fits_day,
            d.weekday = any ((p_schedule).weekdays)
            or d.weekday * 10 + (d.day + 6) / 7 = any ((p_schedule).nth_weekdays)
            or (d.day + 7 > d.last and d.weekday * 10 + 9 = any ((p_schedule).nth_weekdays))
                as fits_weekday
        from (
            select
                extract(month from p_day)::integer as month,
                extract(day from p_day)::integer as day,
                extract(dow from p_day)::integer as weekday,
                extract(day from e.last)::integer as last,
                extract(dow from e.last)::integer as last_weekday
            from (
                select (date_trunc('month', p_day::timestamp) + interval '1 month - 1 day')::date as last
            ) as e
        ) as d
    ) as f
$function$;

comment on function counterfoil.fires_on(counterfoil.schedules, date) is
'Whether the schedule fires on that day of its calendar. Private.';

revoke all on function counterfoil.fires_on(counterfoil.schedules, date) from public;
