-- launch_authority: the narrow part of a launch that a delivery needs.
--
-- Promises: the ten routing and authority fields, JSON null where the launch does not say; never the input.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.launch_authority(p_launch jsonb)
returns jsonb
language sql
immutable
parallel safe
strict
security invoker
as $function$
    select jsonb_build_object(
        'runId', p_launch -> 'runId',
        'playId', p_launch -> 'playId',
        'playName', p_launch -> 'playName',
        'executorToken', p_launch -> 'executorToken',
        'baseUrl', p_launch -> 'baseUrl',
        'runtimeApiBaseUrl', p_launch -> 'runtimeApiBaseUrl',
        'runtimeTokenOrigin', p_launch -> 'runtimeTokenOrigin',
        'orgId', p_launch -> 'orgId',
        'runtimeAuthority', p_launch -> 'runtimeAuthority',
        'vercelProtectionBypassToken', p_launch -> 'vercelProtectionBypassToken'
    )
$function$;

comment on function counterfoil.launch_authority(jsonb) is
'Routing and authority fields of a launch, for deliveries. Private.';

revoke all on function counterfoil.launch_authority(jsonb) from public;
