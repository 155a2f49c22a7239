-- check_fact_fence: refuses half a fence.
--
-- Promises: returns only when the attempt and its lease id are both given, or neither.
-- Locks:    nothing.
-- Raises:   RL001 with DETAIL p_attempt or p_lease_id.
-- Since:    1

create or replace function counterfoil.check_fact_fence(p_attempt integer, p_lease_id text)
returns void
language plpgsql
immutable
parallel safe
called on null input
security invoker
set search_path = pg_catalog, pg_temp
as $function$
begin
    if p_attempt is null and p_lease_id is null then
        return;
    end if;
    perform counterfoil.check_limit(p_attempt, 1, 2147483647, 'p_attempt');
    perform counterfoil.check_id(p_lease_id, 'p_lease_id');
end
$function$;

comment on function counterfoil.check_fact_fence(integer, text) is
'Refuses an attempt without its lease id or the other way round (RL001). Private.';

revoke all on function counterfoil.check_fact_fence(integer, text) from public;
