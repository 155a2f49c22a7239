-- setting_boolean: the value of a setting.
--
-- Promises: what the operator chose, or the default; null for a name that does not exist.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.setting_boolean(p_name text)
returns boolean
language plpgsql
stable
parallel safe
strict
security invoker
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_value boolean;
begin
    -- plpgsql, because it keeps its plan for the session; an SQL function that cannot be inlined plans at each call.
    select (coalesce(s.value, s.default_value) #>> '{}')::boolean
    into v_value
    from counterfoil.settings as s
    where s.name = p_name;
    return v_value;
end
$function$;

comment on function counterfoil.setting_boolean(text) is
'Value of the boolean setting p_name, or its default; null for an unknown name. Private.';

revoke all on function counterfoil.setting_boolean(text) from public;
