-- lease_end: until when a lease that begins now lasts.
--
-- Promises: the time-out of the attempt, null for none, and the end of the lease, which never lies beyond it.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.lease_end(
    p_now timestamptz, p_lease interval, p_timeout_seconds integer, out expires_at timestamptz, out timeout_at timestamptz
)
returns record
language sql
immutable
parallel safe
called on null input
security invoker
as $function$
    select
        least(p_now + p_lease, p_now + make_interval(secs => p_timeout_seconds)),
        p_now + make_interval(secs => p_timeout_seconds)
$function$;

comment on function counterfoil.lease_end(timestamptz, interval, integer) is
'End of a lease that begins at p_now, and of the attempt''s time if it has a time-out. Private.';

revoke all on function counterfoil.lease_end(timestamptz, interval, integer) from public;
