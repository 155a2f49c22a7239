-- is_id: whether a text can be an id.
--
-- Promises: true for 1 to 200 characters without control characters; false for anything else, null too.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.is_id(p_value text)
returns boolean
language sql
immutable
parallel safe
called on null input
security invoker
as $function$
    select coalesce(length(p_value) between 1 and 200 and p_value !~ '[[:cntrl:]]', false)
$function$;

comment on function counterfoil.is_id(text) is
'Whether p_value can be an id: 1 to 200 characters, no control characters. Private.';

revoke all on function counterfoil.is_id(text) from public;
