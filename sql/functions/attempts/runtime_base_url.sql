-- runtime_base_url: where the runtime API of a launch is.
--
-- Promises: runtimeApiBaseUrl where the launch gives one, else baseUrl, without a slash at the end.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.runtime_base_url(p_launch jsonb)
returns text
language sql
immutable
parallel safe
strict
security invoker
as $function$
    select rtrim(coalesce(nullif(p_launch ->> 'runtimeApiBaseUrl', ''), p_launch ->> 'baseUrl'), '/')
$function$;

comment on function counterfoil.runtime_base_url(jsonb) is
'Base URL of a launch''s runtime API. Private.';

revoke all on function counterfoil.runtime_base_url(jsonb) from public;
