-- schedule_launch: the launch that a firing makes.
--
-- Promises: the template with the org, a run id made of the schedule's name and the firing's time, deadlineAt where the
--           template bounds how long a run may take, and `schedule`, the pin that says where the run comes from.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.schedule_launch(
    p_schedule counterfoil.schedules, p_fire_at timestamptz, p_now timestamptz
)
returns jsonb
language sql
stable
parallel safe
called on null input
security invoker
set search_path = pg_catalog, pg_temp
as $function$
    select
        (p_schedule).launch - 'deadlineAfterSeconds'
        || jsonb_build_object(
            'orgId', (p_schedule).org_id,
            'runId', format(
                'schedule:%s:%s', (p_schedule).name, to_char(p_fire_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI"Z"')
            ),
            'schedule', jsonb_build_object(
                'name', (p_schedule).name,
                'scheduleId', (p_schedule).schedule_id,
                'cron', (p_schedule).cron,
                'timeZone', (p_schedule).time_zone,
                'fireAt', counterfoil.iso_time(p_fire_at)
            )
        )
        || case
            when jsonb_typeof((p_schedule).launch -> 'deadlineAfterSeconds') = 'number' then jsonb_build_object(
                'deadlineAt',
                counterfoil.iso_time(p_now + make_interval(secs => ((p_schedule).launch ->> 'deadlineAfterSeconds')::double precision))
            )
            else '{}'::jsonb
        end
$function$;

comment on function counterfoil.schedule_launch(counterfoil.schedules, timestamptz, timestamptz) is
'Launch document of one firing of a schedule. Private.';

revoke all on function counterfoil.schedule_launch(counterfoil.schedules, timestamptz, timestamptz) from public;
