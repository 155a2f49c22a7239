-- utc_offset: what a time zone's clocks are ahead of UTC at a moment.
--
-- Promises: local time minus UTC.
-- Locks:    nothing.
-- Raises:   nothing; an unknown time zone is the database's own error.
-- Since:    1

create or replace function counterfoil.utc_offset(p_at timestamptz, p_time_zone text)
returns interval
language sql
immutable
parallel safe
strict
security invoker
as $function$
    select (p_at at time zone p_time_zone) - (p_at at time zone 'UTC')
$function$;

comment on function counterfoil.utc_offset(timestamptz, text) is
'What the clocks of a time zone are ahead of UTC at a moment. Private.';

revoke all on function counterfoil.utc_offset(timestamptz, text) from public;
