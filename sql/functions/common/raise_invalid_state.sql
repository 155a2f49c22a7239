-- raise_invalid_state: raises RL005 invalid_state, the one place that does.
--
-- Promises: never returns. Locks: nothing.
-- Raises:   RL005; MESSAGE for people, DETAIL for programs (the state or rule that forbids it), HINT says what to do.
-- Since:    1

create or replace function counterfoil.raise_invalid_state(p_message text, p_detail text, p_hint text)
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
        errcode = 'RL005',
        message = coalesce(p_message, 'invalid_state'),
        detail = coalesce(p_detail, ''),
        hint = coalesce(p_hint, '');
end
$function$;

comment on function counterfoil.raise_invalid_state(text, text, text) is
'Raises RL005 invalid_state: the present state does not allow the transition. MESSAGE is p_message, DETAIL is p_detail (the state or rule that forbids it), HINT is p_hint. Private.';

revoke all on function counterfoil.raise_invalid_state(text, text, text) from public;
