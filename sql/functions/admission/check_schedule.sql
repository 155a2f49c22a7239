-- check_schedule: refuses what cannot be a schedule.
--
-- Promises: nothing happens when name, time zone, template and policies are good. The template is tried as the launch that a
--           firing would make of it.
-- Locks:    nothing.
-- Raises:   RL001, RL008 (DETAIL: the argument or p_launch.field).
-- Since:    1

create or replace function counterfoil.check_schedule(
    p_org_id text,
    p_name text,
    p_cron jsonb,
    p_time_zone text,
    p_launch jsonb,
    p_overlap text,
    p_catch_up text,
    p_catch_up_seconds integer
)
returns void
language plpgsql
stable
parallel safe
called on null input
security invoker
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_fault text[];
    v_field text;
    v_where text;
    v_seconds jsonb := p_launch -> 'deadlineAfterSeconds';
begin
    perform counterfoil.check_id(p_org_id, 'p_org_id');
    perform counterfoil.check_id(p_name, 'p_name');
    if length(p_name) > 100 then
        perform counterfoil.raise_invalid_argument(
            'p_name has more than 100 characters.', 'p_name', 'The name becomes part of run ids: give a shorter one.'
        );
    end if;

    v_fault := counterfoil.cron_fault(p_cron);
    if v_fault is not null then
        v_where := 'p_cron' || case when v_fault[1] = '' then '' else '.' || v_fault[1] end;
        perform counterfoil.raise_invalid_argument(format('%s %s.', v_where, v_fault[2]), v_where, v_fault[3]);
    end if;
    if p_time_zone is null or not exists (select from pg_timezone_names as z where z.name = p_time_zone) then
        perform counterfoil.raise_invalid_argument(
            'p_time_zone names no time zone.', 'p_time_zone', 'Give a name such as Europe/Berlin or UTC.'
        );
    end if;

    if p_launch is null or jsonb_typeof(p_launch) <> 'object' then
        perform counterfoil.raise_invalid_argument(
            'p_launch must be a JSON object.', 'p_launch', 'Give a launch without orgId and runId.'
        );
    end if;
    select f.field into v_field
    from unnest(array['runId', 'rootRunId', 'parentRunId', 'availableAt', 'deadlineAt', 'schedule'])
        with ordinality as f (field, ordinal)
    where p_launch ? f.field
    order by f.ordinal
    limit 1;
    if found then
        v_where := 'p_launch.' || v_field;
        perform counterfoil.raise_invalid_argument(
            format('%s cannot be the same for every firing.', v_where), v_where,
            'Leave it out; deadlineAfterSeconds bounds how long a run may take.'
        );
    end if;
    if coalesce(p_launch ->> 'orgId', p_org_id) <> p_org_id then
        perform counterfoil.raise_invalid_argument(
            'p_launch.orgId is another org than p_org_id.', 'p_launch.orgId', 'Leave it out.'
        );
    end if;
    if
        coalesce(jsonb_typeof(v_seconds), 'null') <> 'null'
        and (case when v_seconds::text ~ '^[0-9]{1,9}$' then v_seconds::text::bigint not between 1 and 31536000 else true end)
    then
        perform counterfoil.raise_invalid_argument(
            'p_launch.deadlineAfterSeconds must be a whole number from 1 to 31536000.', 'p_launch.deadlineAfterSeconds',
            'Give it as a JSON number of seconds.'
        );
    end if;
    v_fault := counterfoil.launch_fault(p_launch || jsonb_build_object('orgId', p_org_id, 'runId', 'schedule'));
    if v_fault is not null then
        v_where := 'p_launch.' || v_fault[1];
        perform counterfoil.raise_invalid_argument(format('%s %s.', v_where, v_fault[2]), v_where, v_fault[3]);
    end if;
    -- A firing adds these, the name twice, and some 400 bytes of fields and times.
    if
        octet_length(p_launch::text) + 600
        + octet_length(jsonb_build_array(p_org_id, p_name, p_name, p_time_zone, p_cron -> 'expression')::text)
        > counterfoil.setting_integer('launch_max_bytes')
    then
        perform counterfoil.raise_payload_too_large(
            'p_launch leaves no room for what a firing adds within launch_max_bytes.', 'p_launch',
            'Keep large input elsewhere and pass a reference, or raise the setting launch_max_bytes.'
        );
    end if;
    perform counterfoil.check_document(p_launch, 'p_launch');

    if p_overlap is null or p_overlap not in ('allow', 'skip', 'buffer') then
        perform counterfoil.raise_invalid_argument(
            'p_overlap is no overlap policy.', 'p_overlap', 'Give allow, skip or buffer.'
        );
    end if;
    if p_catch_up is null or p_catch_up not in ('none', 'one', 'all') then
        perform counterfoil.raise_invalid_argument(
            'p_catch_up is no catch-up policy.', 'p_catch_up', 'Give none, one or all.'
        );
    end if;
    perform counterfoil.check_limit(coalesce(p_catch_up_seconds, 60), 60, 31536000, 'p_catch_up_seconds');
end
$function$;

comment on function counterfoil.check_schedule(text, text, jsonb, text, jsonb, text, text, integer) is
'Refuses arguments of create_schedule that cannot be a schedule. Private.';

revoke all on function counterfoil.check_schedule(text, text, jsonb, text, jsonb, text, text, integer) from public;
