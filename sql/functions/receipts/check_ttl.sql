-- check_ttl: refuses what can be no time to live of a receipt.
--
-- Promises: returns only when is_ttl holds for p_ttl.
-- Locks:    nothing.
-- Raises:   RL001 with DETAIL p_where.
-- Since:    1

create or replace function counterfoil.check_ttl(p_ttl jsonb, p_where text)
returns void
language plpgsql
volatile
parallel safe
called on null input
security invoker
set search_path = pg_catalog, pg_temp
as $function$
begin
    if not counterfoil.is_ttl(p_ttl) then
        perform counterfoil.raise_invalid_argument(
            format('%s is no time to live.', p_where), p_where,
            'Give a number of seconds from 0.001 to 3155760000, which is 100 years, or leave it out.'
        );
    end if;
end
$function$;

comment on function counterfoil.check_ttl(jsonb, text) is
'Refuses a malformed ttlSeconds of a receipt (RL001, DETAIL p_where). Private.';

revoke all on function counterfoil.check_ttl(jsonb, text) from public;
