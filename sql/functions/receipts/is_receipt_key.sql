-- is_receipt_key: whether a text can be the key of a receipt.
--
-- Promises: true for 1 to 1000 characters, and 1800 bytes at most, without control characters; false for anything else, null
--           too. More bytes may not fit into the index, beside the org's id.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.is_receipt_key(p_key text)
returns boolean
language sql
immutable
parallel safe
called on null input
security invoker
as $function$
    select coalesce(length(p_key) between 1 and 1000 and octet_length(p_key) <= 1800 and p_key !~ '[[:cntrl:]]', false)
$function$;

comment on function counterfoil.is_receipt_key(text) is
'Whether p_key can be a receipt key: 1 to 1000 characters, at most 1800 bytes, no control characters. Private.';

revoke all on function counterfoil.is_receipt_key(text) from public;
