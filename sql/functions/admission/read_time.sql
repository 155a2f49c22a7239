-- read_time: the moment that a JSON string names.
--
-- Promises: the moment of an RFC 3339 time with a zone (2026-01-02T03:04:05.678Z); null for anything else. Never
--           raises, so that one bad row in ten thousand can be named.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.read_time(p_value jsonb)
returns timestamptz
language plpgsql
stable
parallel safe
strict
security invoker
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_text text := p_value #>> '{}';
    v_parts text[];
begin
    if jsonb_typeof(p_value) <> 'string' then
        return null;
    end if;

    v_parts := regexp_match(
        v_text,
        '^([1-9]\d{3})-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])'
        'T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,9})?(Z|[+-](0\d|1[0-4]):[0-5]\d)$'
    );
    -- 31 April is well formed and no day.
    if v_parts is null or v_parts[3]::integer > extract(
        day from make_date(v_parts[1]::integer, v_parts[2]::integer, 1) + interval '1 month' - interval '1 day'
    ) then
        return null;
    end if;

    return v_text::timestamptz;
end
$function$;

comment on function counterfoil.read_time(jsonb) is
'Moment named by a JSON string such as "2026-01-02T03:04:05Z"; null when it names none. Private.';

revoke all on function counterfoil.read_time(jsonb) from public;
