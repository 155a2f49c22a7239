-- public_launch: a launch without its credentials.
--
-- Promises: the document without its tokens, authority and keys; null for null.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.public_launch(p_launch jsonb)
returns jsonb
language sql
immutable
parallel safe
strict
security invoker
as $function$
    select p_launch - array[
        'executorToken', 'runtimeAuthority', 'vercelProtectionBypassToken', 'preloadedDbSessionUnwrapKey'
    ]
$function$;

comment on function counterfoil.public_launch(jsonb) is
'A launch document without its credentials, for whoever reads it. Private.';

revoke all on function counterfoil.public_launch(jsonb) from public;
