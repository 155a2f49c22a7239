-- raise_schema_version: raises RL009 schema_version, the one place that does.
--
-- Promises: never returns. Locks: nothing.
-- Raises:   RL009; MESSAGE for people, DETAIL for programs (the versions that do not fit), HINT says what to do.
-- Since:    1

create or replace function counterfoil.raise_schema_version(p_message text, p_detail text, p_hint text)
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
        errcode = 'RL009',
        message = coalesce(p_message, 'schema_version'),
        detail = coalesce(p_detail, ''),
        hint = coalesce(p_hint, '');
end
$function$;

comment on function counterfoil.raise_schema_version(text, text, text) is
'Raises RL009 schema_version: driver and schema do not fit. MESSAGE is p_message, DETAIL is p_detail (the versions that do not fit), HINT is p_hint. Private.';

revoke all on function counterfoil.raise_schema_version(text, text, text) from public;
