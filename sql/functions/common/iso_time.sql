-- iso_time: a time as JSON documents spell it.
--
-- Promises: UTC, ISO 8601, microseconds, such as 2026-01-02T03:04:05.678901Z; null for null.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.iso_time(p_time timestamptz)
returns text
language sql
stable
parallel safe
strict
security invoker
as $function$
    select to_char(p_time at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
$function$;

comment on function counterfoil.iso_time(timestamptz) is
'The time in UTC as ISO 8601 with microseconds, as in 2026-01-02T03:04:05.678901Z. Private.';

revoke all on function counterfoil.iso_time(timestamptz) from public;
