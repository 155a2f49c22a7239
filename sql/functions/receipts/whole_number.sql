-- whole_number: a counter as lenient callers send it.
--
-- Promises: the number without its fraction, at least 0 and at most 2147483647; 0 for anything that is no number.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.whole_number(p_value jsonb)
returns integer
language sql
immutable
parallel safe
called on null input
security invoker
as $function$
    select case
        when jsonb_typeof(p_value) = 'number' then greatest(0, least(2147483647, trunc((p_value #>> '{}')::numeric)))::integer
        else 0
    end
$function$;

comment on function counterfoil.whole_number(jsonb) is
'A JSON number as an integer from 0; 0 for anything else. Private.';

revoke all on function counterfoil.whole_number(jsonb) from public;
