-- raise_identity_conflict: raises RL003 identity_conflict, the one place that does.
--
-- Promises: never returns. Locks: nothing.
-- Raises:   RL003; MESSAGE for people, DETAIL for programs (what differs), HINT says what to do.
-- Since:    1

create or replace function counterfoil.raise_identity_conflict(p_message text, p_detail text, p_hint text)
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
        errcode = 'RL003',
        message = coalesce(p_message, 'identity_conflict'),
        detail = coalesce(p_detail, ''),
        hint = coalesce(p_hint, '');
end
$function$;

comment on function counterfoil.raise_identity_conflict(text, text, text) is
'Raises RL003 identity_conflict: the id is taken by other content. MESSAGE is p_message, DETAIL is p_detail (what differs), HINT is p_hint. Private.';

revoke all on function counterfoil.raise_identity_conflict(text, text, text) from public;
