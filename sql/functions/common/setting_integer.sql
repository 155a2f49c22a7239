-- setting_integer: the value of a setting.
--
-- Promises: what the operator chose, or the default; null for a name that does not exist.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.setting_integer(p_name text)
returns bigint
language sql
stable
parallel safe
strict
security invoker
set search_path = pg_catalog, pg_temp
as $function$
    select (s.value_or_default #>> '{}')::bigint
    from (
        select coalesce(g.value, g.default_value) as value_or_default
        from counterfoil.settings as g
        where g.name = p_name
    ) as s
$function$;

comment on function counterfoil.setting_integer(text) is
'Value of the integer setting p_name, or its default; null for an unknown name. Private.';

revoke all on function counterfoil.setting_integer(text) from public;
