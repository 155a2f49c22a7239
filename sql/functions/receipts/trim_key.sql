-- trim_key: a key as the wire means it.
--
-- Promises: without white space at either end; null for null.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.trim_key(p_key text)
returns text
language sql
immutable
parallel safe
strict
security invoker
as $function$
    select btrim(p_key, e' \t\n\r\f\x0b')
$function$;

comment on function counterfoil.trim_key(text) is
'A key without white space at either end. Private.';

revoke all on function counterfoil.trim_key(text) from public;
