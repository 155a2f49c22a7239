-- check_started_launch: refuses a launch that is not the run's.
--
-- Promises: returns only when p_launch is an object of this org and run and no larger than launch_max_bytes.
-- Locks:    nothing.
-- Raises:   RL001 with DETAIL p_launch, p_launch.runId or p_launch.orgId; RL008.
-- Since:    1

create or replace function counterfoil.check_started_launch(p_org_id text, p_run_id text, p_launch jsonb)
returns void
language plpgsql
stable
parallel safe
called on null input
security invoker
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_most bigint;
begin
    if jsonb_typeof(p_launch) is distinct from 'object' then
        perform counterfoil.raise_invalid_argument(
            'p_launch is no object.', 'p_launch', 'Give the launch document as a JSON object.'
        );
    end if;
    if p_launch ->> 'runId' is distinct from p_run_id then
        perform counterfoil.raise_invalid_argument(
            'p_launch is the launch of another run.', 'p_launch.runId',
            'Give the launch that dispatch_launch_for_lease answered for this run.'
        );
    end if;
    if p_launch ->> 'orgId' is distinct from p_org_id then
        perform counterfoil.raise_invalid_argument(
            'p_launch is the launch of another org.', 'p_launch.orgId',
            'Give the launch that dispatch_launch_for_lease answered for this run.'
        );
    end if;
    v_most := counterfoil.setting_integer('launch_max_bytes');
    if counterfoil.json_bytes(p_launch) > v_most then
        perform counterfoil.raise_payload_too_large(
            format('p_launch has %s bytes.', counterfoil.json_bytes(p_launch)), 'p_launch',
            format('A launch may have %s bytes (setting launch_max_bytes).', v_most)
        );
    end if;
end
$function$;

comment on function counterfoil.check_started_launch(text, text, jsonb) is
'Refuses a launch of another org or run (RL001) or one that is too large (RL008). Private.';

revoke all on function counterfoil.check_started_launch(text, text, jsonb) from public;
