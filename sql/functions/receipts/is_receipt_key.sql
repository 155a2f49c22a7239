-- is_receipt_key: whether a text can be the key of a receipt.
--
-- Promises: true for 1 to 1000 characters without control characters; false for anything else, null too.
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
    select coalesce(length(p_key) between 1 and 1000 and p_key !~ '[[:cntrl:]]', false)
$function$;

comment on function counterfoil.is_receipt_key(text) is
'Whether p_key can be a receipt key: 1 to 1000 characters, no control characters. Private.';

revoke all on function counterfoil.is_receipt_key(text) from public;
