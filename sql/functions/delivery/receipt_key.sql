-- receipt_key: the idempotency key of a delivery.
--
-- Promises: terminal:<run>:<delivery key of the terminal> when the delivery holds one, else
--           events:<run>:<sha256 hex of all its delivery keys, in order, joined by newline>.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.receipt_key(p_run_id text, p_terminal_key text, p_all_keys text)
returns text
language sql
stable
parallel safe
called on null input
security invoker
as $function$
    select case
        when p_terminal_key is not null then 'terminal:' || p_run_id || ':' || p_terminal_key
        else 'events:' || p_run_id || ':' || encode(sha256(convert_to(p_all_keys, 'UTF8')), 'hex')
    end
$function$;

comment on function counterfoil.receipt_key(text, text, text) is
'Idempotency key of a delivery of p_run_id: from its terminal''s delivery key, or null and all delivery keys joined by newline. Private.';

revoke all on function counterfoil.receipt_key(text, text, text) from public;
