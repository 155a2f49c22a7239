-- check_reason: refuses an operator's action that says nothing of why.
--
-- Promises: returns when p_reason has 1 to 1000 characters that are not all spaces.
-- Locks:    nothing.
-- Raises:   RL001.
-- Since:    1

create or replace function counterfoil.check_reason(p_reason text)
returns void
language plpgsql
immutable
parallel safe
called on null input
security invoker
set search_path = pg_catalog, pg_temp
as $function$
begin
    if coalesce(btrim(p_reason), '') = '' or length(p_reason) > 1000 then
        perform counterfoil.raise_invalid_argument(
            'p_reason is missing or too long.', 'p_reason', 'Say in 1 to 1000 characters why; it is kept in the audit trail.'
        );
    end if;
end
$function$;

comment on function counterfoil.check_reason(text) is
'Raises RL001 unless p_reason can stand in the audit trail: 1 to 1000 characters. Private.';

revoke all on function counterfoil.check_reason(text) from public;
