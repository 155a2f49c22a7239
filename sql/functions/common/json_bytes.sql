-- json_bytes: the size of a JSON document.
--
-- Promises: bytes of its text form; null for null.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.json_bytes(p_document jsonb)
returns integer
language sql
immutable
parallel safe
strict
security invoker
as $function$
    select octet_length(p_document::text)
$function$;

comment on function counterfoil.json_bytes(jsonb) is
'Size of a JSON document in bytes of its text form. Private.';

revoke all on function counterfoil.json_bytes(jsonb) from public;
