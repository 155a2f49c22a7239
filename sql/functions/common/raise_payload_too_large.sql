-- raise_payload_too_large: raises RL008 payload_too_large, the one place that does.
--
-- Promises: never returns. Locks: nothing.
-- Raises:   RL008; MESSAGE for people, DETAIL for programs (the argument or the JSON path), HINT says what to do.
-- Since:    1

create or replace function counterfoil.raise_payload_too_large(p_message text, p_where text, p_hint text)
returns void
language plpgsql
volatile
parallel unsafe
called on null input
security invoker
set search_path = pg_catalog, pg_temp
as $function$
begin
    raise exception using
        errcode = 'RL008',
        message = coalesce(p_message, 'payload_too_large'),
        detail = coalesce(p_where, ''),
        hint = coalesce(p_hint, '');
end
$function$;

comment on function counterfoil.raise_payload_too_large(text, text, text) is
'Raises RL008 payload_too_large: a document is over its size setting. MESSAGE is p_message, DETAIL is p_where (the argument or the JSON path), HINT is p_hint. Private.';

revoke all on function counterfoil.raise_payload_too_large(text, text, text) from public;
