-- raise_invalid_argument: raises RL001 invalid_argument, the one place that does.
--
-- Promises: never returns. Locks: nothing.
-- Raises:   RL001; MESSAGE for people, DETAIL for programs (the argument or the JSON path), HINT says what to do.
-- Since:    1

create or replace function counterfoil.raise_invalid_argument(p_message text, p_where text, p_hint text)
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
        errcode = 'RL001',
        message = coalesce(p_message, 'invalid_argument'),
        detail = coalesce(p_where, ''),
        hint = coalesce(p_hint, '');
end
$function$;

comment on function counterfoil.raise_invalid_argument(text, text, text) is
'Raises RL001 invalid_argument: an argument is missing or malformed. MESSAGE is p_message, DETAIL is p_where (the argument or the JSON path), HINT is p_hint. Private.';

revoke all on function counterfoil.raise_invalid_argument(text, text, text) from public;
