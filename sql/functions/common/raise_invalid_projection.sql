-- raise_invalid_projection: raises P0001 invalid_projection, the one place that does.
--
-- Promises: never returns. Locks: nothing.
-- Raises:   P0001; MESSAGE for people, DETAIL for programs (the JSON path or the conflicting identity), HINT says what to do.
-- Since:    1

create or replace function counterfoil.raise_invalid_projection(p_message text, p_detail text, p_hint text)
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
        errcode = 'P0001',
        message = coalesce(p_message, 'invalid_projection'),
        detail = coalesce(p_detail, ''),
        hint = coalesce(p_hint, '');
end
$function$;

comment on function counterfoil.raise_invalid_projection(text, text, text) is
'Raises P0001 invalid_projection: a fact is malformed or contradicts the journal. MESSAGE is p_message, DETAIL is p_detail (the JSON path or the conflicting identity), HINT is p_hint. Private.';

revoke all on function counterfoil.raise_invalid_projection(text, text, text) from public;
