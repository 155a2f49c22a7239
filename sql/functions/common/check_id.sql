-- check_id: refuses an id that is no id.
--
-- Promises: returns only when p_value has 1 to 200 characters, none of them a control character.
-- Locks:    nothing.
-- Raises:   RL001 with DETAIL p_where.
-- Since:    1

create or replace function counterfoil.check_id(p_value text, p_where text)
returns void
language plpgsql
volatile
parallel safe
called on null input
security invoker
set search_path = pg_catalog, pg_temp
as $function$
begin
    if counterfoil.is_id(p_value) then
        return;
    elsif p_value is null or p_value = '' then
        perform counterfoil.raise_invalid_argument(
            format('%s is missing.', p_where), p_where, 'Give an id of 1 to 200 characters.'
        );
    elsif length(p_value) > 200 then
        perform counterfoil.raise_invalid_argument(
            format('%s has %s characters; an id may have 200.', p_where, length(p_value)),
            p_where, 'Give an id of 1 to 200 characters.'
        );
    else
        perform counterfoil.raise_invalid_argument(
            format('%s holds a control character.', p_where), p_where, 'Give an id without control characters.'
        );
    end if;
end
$function$;

comment on function counterfoil.check_id(text, text) is
'Refuses a missing id, one of over 200 characters, or one with control characters (RL001, DETAIL p_where). Private.';

revoke all on function counterfoil.check_id(text, text) from public;
