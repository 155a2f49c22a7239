-- raise_serialization_failure: raises 40001 serialization_failure, the one place that does.
--
-- Promises: never returns. Locks: nothing.
-- Raises:   40001; MESSAGE for people, DETAIL for programs (the reason, such as snapshot_too_old), HINT says what to do.
-- Since:    1

create or replace function counterfoil.raise_serialization_failure(p_message text, p_reason text, p_hint text)
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
        errcode = '40001',
        message = coalesce(p_message, 'serialization_failure'),
        detail = coalesce(p_reason, ''),
        hint = coalesce(p_hint, '');
end
$function$;

comment on function counterfoil.raise_serialization_failure(text, text, text) is
'Raises 40001 serialization_failure: the transaction''s snapshot is too old for what it wants to write. MESSAGE is p_message, DETAIL is p_reason (the reason, such as snapshot_too_old), HINT is p_hint. Private.';

revoke all on function counterfoil.raise_serialization_failure(text, text, text) from public;
