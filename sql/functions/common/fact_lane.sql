-- fact_lane: the lane a fact waits in.
--
-- Promises: search when the payload says "searchOnly": true, else lifecycle.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.fact_lane(p_payload jsonb)
returns text
language sql
immutable
parallel safe
called on null input
security invoker
as $function$
    select case when p_payload -> 'searchOnly' = 'true'::jsonb then 'search' else 'lifecycle' end
$function$;

comment on function counterfoil.fact_lane(jsonb) is
'Lane of a fact with this payload: search for "searchOnly": true, else lifecycle. Private.';

revoke all on function counterfoil.fact_lane(jsonb) from public;
