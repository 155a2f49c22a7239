-- list_schedules: the schedules of an org, by name.
--
-- Promises: up to p_limit after p_after_name: name, next firing, and a document that says all about it. The template is
--           told without its credentials.
-- Locks:    nothing.
-- Raises:   RL001.
-- Since:    1

create or replace function counterfoil.list_schedules(
    p_org_id text, p_after_name text default null, p_limit integer default 100
)
returns table (name text, next_fire_at timestamptz, schedule jsonb)
language plpgsql
stable
parallel safe
called on null input
security definer
set search_path = pg_catalog, pg_temp
as $function$
begin
    perform counterfoil.check_id(p_org_id, 'p_org_id');
    perform counterfoil.check_limit(p_limit, 1, 1000, 'p_limit');
    return query
    select
        s.name, s.next_fire_at,
        jsonb_build_object(
            'name', s.name,
            'cron', s.cron,
            'timeZone', s.time_zone,
            'launch', counterfoil.public_launch(s.launch),
            'overlap', s.overlap,
            'catchUp', s.catch_up,
            'catchUpSeconds', s.catch_up_seconds,
            'createdAt', counterfoil.iso_time(s.created_at),
            'pausedAt', counterfoil.iso_time(s.paused_at),
            'nextFireAt', counterfoil.iso_time(s.next_fire_at),
            'bufferedAt', counterfoil.iso_time(s.buffered_at),
            'lastFireAt', counterfoil.iso_time(s.last_fire_at),
            'lastRunId', s.last_run_id,
            'lastOutcome', s.last_outcome,
            'lastError', s.last_error
        )
    from counterfoil.schedules as s
    where s.org_id = p_org_id and s.name > coalesce(p_after_name, '')
    order by s.name
    limit p_limit;
end
$function$;

comment on function counterfoil.list_schedules(text, text, integer) is
'Schedules of an org by name, p_limit (1 to 1000) after p_after_name: name, next_fire_at, and the schedule as JSON.';

revoke all on function counterfoil.list_schedules(text, text, integer) from public;
