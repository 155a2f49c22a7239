-- event_time: when a producer says that something happened.
--
-- Promises: the time that a JSON number (milliseconds since 1970) or an ISO 8601 string with seconds and an offset
--           names; null for anything else, such as the 31st of February. Of the years 1 to 9999 in UTC, so that it can be
--           written as such a string again, in a cursor.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.event_time(p_value jsonb)
returns timestamptz
language plpgsql
stable
parallel safe
called on null input
security invoker
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_parts text[];
    v_millis numeric;
    v_at timestamptz;
begin
    case coalesce(jsonb_typeof(p_value), 'null')
        when 'number' then
            v_millis := (p_value #>> '{}')::numeric;
            -- The years 1 to 9999.
            if v_millis between -62135596800000 and 253402300799999 then
                -- Rounded: a number too small for a double is an error, not 0.
                return to_timestamp(round(v_millis / 1000, 6)::double precision);
            end if;
        when 'string' then
            v_parts := regexp_match(
                p_value #>> '{}',
                '^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.\d{1,9})?(?:Z|[+-](\d\d):(\d\d))$'
            );
            if
                v_parts[1] > '0000' and v_parts[2] between '01' and '12'
                and v_parts[4] < '24' and v_parts[5] < '60' and v_parts[6] < '60'
                and coalesce(v_parts[7] < '16' and v_parts[8] < '60', true)
                and v_parts[3]::integer between 1 and extract(
                    day from make_date(v_parts[1]::integer, v_parts[2]::integer, 1) + interval '1 month - 1 day'
                )
            then
                v_at := (p_value #>> '{}')::timestamptz;
                -- An offset leads out of the years that four digits can name.
                if v_at >= '0001-01-01T00:00:00Z' and v_at < '10000-01-01T00:00:00Z' then
                    return v_at;
                end if;
            end if;
        else
            return null;
    end case;

    return null;
end
$function$;

comment on function counterfoil.event_time(jsonb) is
'Time that a JSON value names: milliseconds since 1970, or ISO 8601 with seconds and an offset; null for anything else. Private.';

revoke all on function counterfoil.event_time(jsonb) from public;
