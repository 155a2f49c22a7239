-- cron_fault: what is wrong with a parsed cron expression.
--
-- Promises: null for a good one, else {field, message, hint} of the first fault.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.cron_fault(p_cron jsonb)
returns text[]
language plpgsql
immutable
parallel safe
called on null input
security invoker
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_field text;
    v_fault text[];
begin
    if p_cron is null or jsonb_typeof(p_cron) <> 'object' then
        return array['', 'must be a JSON object', 'Give the parsed expression, as the driver makes it.'];
    end if;
    if coalesce(jsonb_typeof(p_cron -> 'expression'), 'null') <> 'string' or length(p_cron ->> 'expression') not between 1 and 1000 then
        return array['expression', 'must be a string of 1 to 1000 characters', 'Give the cron expression as it was written.'];
    end if;

    select array[f.field, format('must be an array of whole numbers from %s to %s, none of them twice', f.minimum, f.maximum), f.hint]
    into v_fault
    from (
        values
            (1, 'minutes', 0, 59, 1, 'At least one minute of the hour.'),
            (2, 'hours', 0, 23, 1, 'At least one hour of the day.'),
            (3, 'days', 1, 31, 0, 'Days of the month; may be empty.'),
            (4, 'months', 1, 12, 1, 'At least one month.'),
            (5, 'weekdays', 0, 6, 0, '0 is Sunday; may be empty.'),
            (6, 'nthWeekdays', 1, 69, 0, 'Ten times the weekday plus 1 to 5, or plus 9 for the last; may be empty.')
    ) as f (ordinal, field, minimum, maximum, fewest, hint)
    where case
        when coalesce(jsonb_typeof(p_cron -> f.field), 'null') <> 'array' then true
        else jsonb_array_length(p_cron -> f.field) not between f.fewest and 60
            or exists (
                select
                from jsonb_array_elements(p_cron -> f.field) as e (item)
                where case
                    when jsonb_typeof(e.item) <> 'number' or e.item::text !~ '^[0-9]{1,2}$' then true
                    else e.item::text::integer not between f.minimum and f.maximum
                        or (f.field = 'nthWeekdays' and e.item::text::integer % 10 not in (1, 2, 3, 4, 5, 9))
                end
            )
            or (select count(distinct e.item) <> count(*) from jsonb_array_elements(p_cron -> f.field) as e (item))
    end
    order by f.ordinal
    limit 1;
    if found then
        return v_fault;
    end if;

    select f.field into v_field
    from unnest(array['lastDay', 'lastWorkingDay', 'dayAndWeekday', 'everyRealHour']) with ordinality as f (field, ordinal)
    where coalesce(jsonb_typeof(p_cron -> f.field), 'null') <> 'boolean'
    order by f.ordinal
    limit 1;
    if found then
        return array[v_field, 'must be true or false', 'Give the parsed expression, as the driver makes it.'];
    end if;
    return null;
end
$function$;

comment on function counterfoil.cron_fault(jsonb) is
'First fault of a parsed cron expression as {field, message, hint}; null when it has none. Private.';

revoke all on function counterfoil.cron_fault(jsonb) from public;
