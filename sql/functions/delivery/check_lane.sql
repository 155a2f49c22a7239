-- check_lane: refuses what is no lane.
--
-- Promises: returns only for lifecycle and search.
-- Locks:    nothing.
-- Raises:   RL001 with DETAIL p_lane.
-- Since:    1

create or replace function counterfoil.check_lane(p_lane text)
returns void
language plpgsql
volatile
parallel unsafe
called on null input
security invoker
set search_path = pg_catalog, pg_temp
as $function$
begin
    if p_lane is null or p_lane not in ('lifecycle', 'search') then
        perform counterfoil.raise_invalid_argument('p_lane is no lane.', 'p_lane', 'Give lifecycle or search.');
    end if;
end
$function$;

comment on function counterfoil.check_lane(text) is
'Refuses anything but lifecycle and search (RL001). Private.';

revoke all on function counterfoil.check_lane(text) from public;
