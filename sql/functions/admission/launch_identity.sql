-- launch_identity: the part of a launch document that makes it the same launch.
--
-- Promises: the document without its volatile fields. Credentials, handles to prepared input and the choice of log
--           identity differ from one try at launching to the next; everything else is the launch.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.launch_identity(p_launch jsonb)
returns jsonb
language sql
immutable
parallel safe
strict
security invoker
as $function$
    select p_launch - array[
        'launchIdentityDigest', 'runtimeLogIdentity', 'executorToken', 'inputFileId', 'preloadedDbSessionUnwrapKey'
    ]
$function$;

comment on function counterfoil.launch_identity(jsonb) is
'Launch document without its volatile fields: what its identity is computed from. Private.';

revoke all on function counterfoil.launch_identity(jsonb) from public;
