-- receipt_key_hint: what a receipt key must be, for the HINT of whatever refuses one.
--
-- Promises: is_receipt_key in words.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.receipt_key_hint()
returns text
language sql
immutable
parallel safe
called on null input
security invoker
as $function$
    select 'A key has 1 to 1000 characters, 1800 bytes at most, and none of them is a control character.'
$function$;

comment on function counterfoil.receipt_key_hint() is
'What a receipt key must be, in words: the HINT for one that is refused. Private.';

revoke all on function counterfoil.receipt_key_hint() from public;
