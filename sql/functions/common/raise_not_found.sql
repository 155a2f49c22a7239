-- raise_not_found: raises RL002 not_found, the one place that does.
--
-- Promises: never returns. Locks: nothing.
-- Raises:   RL002; MESSAGE for people, DETAIL for programs (such as run_not_found), HINT says what to do.
-- Since:    1

create or replace function counterfoil.raise_not_found(p_message text, p_detail text, p_hint text)
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
        errcode = 'RL002',
        message = coalesce(p_message, 'not_found'),
        detail = coalesce(p_detail, ''),
        hint = coalesce(p_hint, '');
end
$function$;

comment on function counterfoil.raise_not_found(text, text, text) is
'Raises RL002 not_found: nothing of that id exists in the org. MESSAGE is p_message, DETAIL is p_detail (such as run_not_found), HINT is p_hint. Private.';

revoke all on function counterfoil.raise_not_found(text, text, text) from public;
