-- launch_path: where in the arguments a launch's field lies.
--
-- Promises: p_launch.field or p_launches[i].field, i from 0; without the dot where the field is empty.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.launch_path(p_single boolean, p_ordinal bigint, p_field text)
returns text
language sql
immutable
parallel safe
strict
security invoker
as $function$
    select case when p_single then 'p_launch' else format('p_launches[%s]', p_ordinal - 1) end
        || case when p_field = '' then '' else '.' || p_field end
$function$;

comment on function counterfoil.launch_path(boolean, bigint, text) is
'JSON path of a field of the launch with that ordinal (from 1), for errors. Private.';

revoke all on function counterfoil.launch_path(boolean, bigint, text) from public;
