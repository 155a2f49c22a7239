-- raise_lease_lost: raises RL004 lease_lost, the one place that does.
--
-- Promises: never returns. Locks: nothing.
-- Raises:   RL004; MESSAGE for people, DETAIL for programs (the reason, such as delivery_lease_not_current), HINT says what to do.
-- Since:    1

create or replace function counterfoil.raise_lease_lost(p_message text, p_reason text, p_hint text)
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
        errcode = 'RL004',
        message = coalesce(p_message, 'lease_lost'),
        detail = coalesce(p_reason, ''),
        hint = coalesce(p_hint, '');
end
$function$;

comment on function counterfoil.raise_lease_lost(text, text, text) is
'Raises RL004 lease_lost: a lease or prefix proof failed. MESSAGE is p_message, DETAIL is p_reason (the reason, such as delivery_lease_not_current), HINT is p_hint. Private.';

revoke all on function counterfoil.raise_lease_lost(text, text, text) from public;
