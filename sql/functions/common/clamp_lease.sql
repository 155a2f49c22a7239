-- clamp_lease: the length of a lease, within its bounds.
--
-- Promises: an interval of p_seconds, at least 5 and at most 300 seconds; 30 where p_seconds is null.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.clamp_lease(p_seconds integer)
returns interval
language sql
immutable
parallel safe
called on null input
security invoker
as $function$
    select make_interval(secs => greatest(5, least(300, coalesce(p_seconds, 30))))
$function$;

comment on function counterfoil.clamp_lease(integer) is
'Length of a lease: p_seconds clamped to 5…300 seconds, 30 where none is given. Private.';

revoke all on function counterfoil.clamp_lease(integer) from public;
