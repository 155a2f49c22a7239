-- check_limit: refuses a number that is missing or out of range.
--
-- Promises: returns only when p_minimum <= p_value <= p_maximum.
-- Locks:    nothing.
-- Raises:   RL001 with DETAIL p_where.
-- Since:    1

create or replace function counterfoil.check_limit(p_value bigint, p_minimum bigint, p_maximum bigint, p_where text)
returns void
language plpgsql
volatile
parallel safe
called on null input
security invoker
set search_path = pg_catalog, pg_temp
as $function$
begin
    if p_value is null or p_value < p_minimum or p_value > p_maximum then
        perform counterfoil.raise_invalid_argument(
            format('%s is %s; it must lie between %s and %s.', p_where, coalesce(p_value::text, 'missing'), p_minimum, p_maximum),
            p_where, format('Give a whole number from %s to %s.', p_minimum, p_maximum)
        );
    end if;
end
$function$;

comment on function counterfoil.check_limit(bigint, bigint, bigint, text) is
'Refuses a missing number or one outside p_minimum to p_maximum (RL001, DETAIL p_where). Private.';

revoke all on function counterfoil.check_limit(bigint, bigint, bigint, text) from public;
