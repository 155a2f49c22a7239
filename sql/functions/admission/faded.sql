-- faded: what is left of a number of events that counts for less as time passes.
--
-- Promises: p_events as of p_since, less by a factor of e for each minute until p_now; all of it where the clock was set back.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.faded(p_events double precision, p_since timestamptz, p_now timestamptz)
returns double precision
language sql
immutable
parallel safe
strict
security invoker
as $function$
    -- Within bounds: exp() raises an error where its result would be too small for a double.
    select p_events * exp(-greatest(least(extract(epoch from p_now - p_since)::double precision / 60, 100), 0))
$function$;

comment on function counterfoil.faded(double precision, timestamptz, timestamptz) is
'A number of events, less by a factor of e for each minute that has passed. Private.';

revoke all on function counterfoil.faded(double precision, timestamptz, timestamptz) from public;
