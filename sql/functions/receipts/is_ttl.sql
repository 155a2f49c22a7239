-- is_ttl: whether a JSON value can be the time to live of a receipt.
--
-- Promises: true for a number of seconds from 0.001 to 100 years, and for null or nothing, which is no end; false for anything else.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.is_ttl(p_ttl jsonb)
returns boolean
language sql
immutable
parallel safe
called on null input
security invoker
as $function$
    select case coalesce(jsonb_typeof(p_ttl), 'null')
        when 'null' then true
        when 'number' then (p_ttl #>> '{}')::numeric between 0.001 and 3155760000
        else false
    end
$function$;

comment on function counterfoil.is_ttl(jsonb) is
'Whether p_ttl can be a receipt''s ttlSeconds: a number from 0.001 to 3155760000, or null. Private.';

revoke all on function counterfoil.is_ttl(jsonb) from public;
