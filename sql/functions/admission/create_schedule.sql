-- create_schedule: launches a play again and again, by cron.
--
-- Promises: one row. The schedule stands and fires from now on (created), or stood with the same contents (replayed). One
--           that stood with other contents is refused, or with p_replace it has the new ones from now on (replaced): what
--           was due already, or waits for the end of a run, still fires, and a pause goes on. A
--           firing launches p_launch as run `schedule:<name>:<time in UTC>`, with `schedule` in it, the pin that names the
--           schedule and the firing. p_cron is the parsed expression: {expression, minutes, hours, days, lastDay,
--           lastWorkingDay, months, weekdays, nthWeekdays, dayAndWeekday, everyRealHour}. p_overlap: allow, skip (while the run
--           before has not ended) or buffer (one waits for its end). p_catch_up: none (later than a minute is left out), one (the
--           latest that was missed) or all; p_catch_up_seconds bounds how late (default for all: a day).
-- Locks:    the schedule.
-- Raises:   RL001, RL008 (DETAIL: the argument, p_cron.field or p_launch.field); RL003 (DETAIL: what differs).
-- Since:    1

create or replace function counterfoil.create_schedule(
    p_org_id text,
    p_name text,
    p_cron jsonb,
    p_time_zone text,
    p_launch jsonb,
    p_overlap text default 'skip',
    p_catch_up text default 'one',
    p_catch_up_seconds integer default null,
    p_replace boolean default false
)
returns table (name text, outcome text, next_fire_at timestamptz)
language plpgsql
volatile
parallel unsafe
called on null input
security definer
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_now timestamptz := clock_timestamp();
    v_made counterfoil.schedules;
    v_next timestamptz;
    v_stands counterfoil.schedules;
    v_differs text;
begin
    perform counterfoil.check_schedule(
        p_org_id, p_name, p_cron, p_time_zone, p_launch, p_overlap, p_catch_up, p_catch_up_seconds
    );
    -- In the order of the table's columns; the last ones are set when it fires.
    select
        p_org_id, p_name, gen_random_uuid(), p_cron ->> 'expression',
        array(select e.item::text::smallint from jsonb_array_elements(p_cron -> 'minutes') as e (item) order by 1),
        array(select e.item::text::smallint from jsonb_array_elements(p_cron -> 'hours') as e (item) order by 1),
        array(select e.item::text::smallint from jsonb_array_elements(p_cron -> 'days') as e (item) order by 1),
        (p_cron -> 'lastDay')::boolean, (p_cron -> 'lastWorkingDay')::boolean,
        array(select e.item::text::smallint from jsonb_array_elements(p_cron -> 'months') as e (item) order by 1),
        array(select e.item::text::smallint from jsonb_array_elements(p_cron -> 'weekdays') as e (item) order by 1),
        array(select e.item::text::smallint from jsonb_array_elements(p_cron -> 'nthWeekdays') as e (item) order by 1),
        (p_cron -> 'dayAndWeekday')::boolean, (p_cron -> 'everyRealHour')::boolean, p_time_zone, p_launch, p_overlap, p_catch_up,
        coalesce(p_catch_up_seconds, case p_catch_up when 'none' then 60 when 'all' then 86400 end), v_now,
        null::timestamptz, null::timestamptz, null::timestamptz, null::timestamptz, null::timestamptz, null::text, null::text, null::text
    into v_made;
    v_next := counterfoil.next_fire_at(v_made, v_now);
    if v_next is null then
        perform counterfoil.raise_invalid_argument(
            'p_cron fits no day of the next fifty years.', 'p_cron', 'Give days that the months have.'
        );
    end if;

    insert into counterfoil.schedules as s (
        org_id, name, schedule_id, cron, minutes, hours, days, last_day, last_working_day, months, weekdays, nth_weekdays,
        day_and_weekday, every_real_hour, time_zone, launch, overlap, catch_up, catch_up_seconds, created_at, next_fire_at, look_at
    )
    values (
        v_made.org_id, v_made.name, v_made.schedule_id, v_made.cron, v_made.minutes, v_made.hours, v_made.days, v_made.last_day,
        v_made.last_working_day, v_made.months, v_made.weekdays, v_made.nth_weekdays, v_made.day_and_weekday,
        v_made.every_real_hour, v_made.time_zone, v_made.launch, v_made.overlap, v_made.catch_up, v_made.catch_up_seconds,
        v_made.created_at, v_next, v_next
    )
    on conflict on constraint schedules_pkey do nothing;
    if found then
        return query select p_name, 'created'::text, v_next;
        return;
    end if;

    select s.* into v_stands
    from counterfoil.schedules as s
    where s.org_id = p_org_id and s.name = p_name
    for no key update;
    select string_agg(d.argument, ', ' order by d.argument) into v_differs
    from (
        values
            ('p_cron', (
                v_stands.cron, v_stands.minutes, v_stands.hours, v_stands.days, v_stands.last_day, v_stands.last_working_day,
                v_stands.months, v_stands.weekdays, v_stands.nth_weekdays, v_stands.day_and_weekday, v_stands.every_real_hour
            ) is distinct from (
                v_made.cron, v_made.minutes, v_made.hours, v_made.days, v_made.last_day, v_made.last_working_day,
                v_made.months, v_made.weekdays, v_made.nth_weekdays, v_made.day_and_weekday, v_made.every_real_hour
            )),
            ('p_time_zone', v_stands.time_zone is distinct from v_made.time_zone),
            ('p_launch', v_stands.launch is distinct from v_made.launch),
            ('p_overlap', v_stands.overlap is distinct from v_made.overlap),
            ('p_catch_up', v_stands.catch_up is distinct from v_made.catch_up),
            ('p_catch_up_seconds', v_stands.catch_up_seconds is distinct from v_made.catch_up_seconds)
    ) as d (argument, differs)
    where d.differs;
    if v_differs is not null and not coalesce(p_replace, false) then
        perform counterfoil.raise_identity_conflict(
            format('Schedule %s exists with other contents; these differ: %s.', p_name, v_differs), v_differs,
            'Give p_replace to replace it, repeat the first call unchanged, or choose another name.'
        );
    elsif v_differs is not null then
        v_next := case
            when v_stands.paused_at is null and v_stands.next_fire_at <= v_now then v_stands.next_fire_at
            when v_stands.paused_at is null then v_next
        end;
        update counterfoil.schedules as s
        set
            cron = v_made.cron,
            minutes = v_made.minutes,
            hours = v_made.hours,
            days = v_made.days,
            last_day = v_made.last_day,
            last_working_day = v_made.last_working_day,
            months = v_made.months,
            weekdays = v_made.weekdays,
            nth_weekdays = v_made.nth_weekdays,
            day_and_weekday = v_made.day_and_weekday,
            every_real_hour = v_made.every_real_hour,
            time_zone = v_made.time_zone,
            launch = v_made.launch,
            overlap = v_made.overlap,
            catch_up = v_made.catch_up,
            catch_up_seconds = v_made.catch_up_seconds,
            next_fire_at = v_next,
            look_at = case when s.buffered_at is not null and v_made.overlap = 'buffer' then v_now else v_next end,
            buffered_at = case when v_made.overlap = 'buffer' then s.buffered_at end
        where s.org_id = p_org_id and s.name = p_name;
        perform counterfoil.record_audit(
            p_org_id, 'replace_schedule', jsonb_build_object('schedule', p_name), null,
            jsonb_build_object('changed', v_differs), v_now
        );
        return query select p_name, 'replaced'::text, v_next;
        return;
    end if;
    return query select p_name, 'replayed'::text, v_stands.next_fire_at;
end
$function$;

comment on function counterfoil.create_schedule(text, text, jsonb, text, jsonb, text, text, integer, boolean) is
'Makes a schedule: p_launch (a launch without orgId and runId) is launched whenever the parsed cron expression fits in p_time_zone. p_replace gives one that stands these contents. One row (name, outcome created, replayed or replaced, next_fire_at).';

revoke all on function counterfoil.create_schedule(text, text, jsonb, text, jsonb, text, text, integer, boolean) from public;
