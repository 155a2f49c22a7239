-- check_ledger_events: refuses a piece of a delivery that is not a list of ledger events.
--
-- Promises: returns only when p_events is an array of objects with the identity that the ledger stores,
--           whose types belong to the endpoint: run.created or run.started alone, or anything but those two.
-- Locks:    nothing.
-- Raises:   RL001 with DETAIL such as p_events[3].type.
-- Since:    1

create or replace function counterfoil.check_ledger_events(p_events jsonb, p_endpoint text)
returns void
language plpgsql
volatile
parallel safe
called on null input
security invoker
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_index bigint;
    v_field text;
    v_start text;
begin
    if p_events is null or jsonb_typeof(p_events) <> 'array' then
        perform counterfoil.raise_invalid_argument(
            'p_events is no array.', 'p_events', 'Give the projected events of the delivery as a JSON array.'
        );
    end if;

    select e.ordinality - 1, case
        when jsonb_typeof(e.event) <> 'object' then ''
        when jsonb_typeof(e.event -> 'type') is distinct from 'string' then '.type'
        when jsonb_typeof(e.event -> 'eventId') is distinct from 'string' then '.eventId'
        when jsonb_typeof(e.event -> 'seq') is distinct from 'number' or e.event ->> 'seq' !~ '^[0-9]{1,18}$' then '.seq'
        when jsonb_typeof(e.event -> 'item') is distinct from 'number' or e.event ->> 'item' !~ '^[0-9]{1,9}$' then '.item'
        when jsonb_typeof(e.event -> 'occurredAt') is distinct from 'string' then '.occurredAt'
    end
    into v_index, v_field
    from jsonb_array_elements(p_events) with ordinality as e (event, ordinality)
    where
        jsonb_typeof(e.event) <> 'object'
        or jsonb_typeof(e.event -> 'type') is distinct from 'string'
        or jsonb_typeof(e.event -> 'eventId') is distinct from 'string'
        or jsonb_typeof(e.event -> 'seq') is distinct from 'number' or e.event ->> 'seq' !~ '^[0-9]{1,18}$'
        or jsonb_typeof(e.event -> 'item') is distinct from 'number' or e.event ->> 'item' !~ '^[0-9]{1,9}$'
        or jsonb_typeof(e.event -> 'occurredAt') is distinct from 'string'
    order by e.ordinality
    limit 1;
    if found then
        perform counterfoil.raise_invalid_argument(
            format('p_events[%s]%s is missing or of the wrong type.', v_index, v_field),
            format('p_events[%s]%s', v_index, v_field),
            'Give the events exactly as they were projected: type, eventId, occurredAt are strings, seq and item numbers.'
        );
    end if;

    v_start := case p_endpoint when 'created' then 'run.created' when 'started' then 'run.started' end;
    if v_start is not null then
        if jsonb_array_length(p_events) <> 1 or p_events -> 0 ->> 'type' <> v_start then
            perform counterfoil.raise_invalid_argument(
                format('p_events must hold one %s event and nothing else.', v_start),
                'p_events', 'Start facts are delivered alone, each through its own endpoint.'
            );
        end if;
        return;
    end if;

    select e.ordinality - 1
    into v_index
    from jsonb_array_elements(p_events) with ordinality as e (event, ordinality)
    where e.event ->> 'type' in ('run.created', 'run.started')
    order by e.ordinality
    limit 1;
    if found then
        perform counterfoil.raise_invalid_argument(
            format('p_events[%s] is a start event.', v_index),
            format('p_events[%s].type', v_index),
            'Start facts are delivered alone, each through its own endpoint.'
        );
    end if;
end
$function$;

comment on function counterfoil.check_ledger_events(jsonb, text) is
'Refuses p_events (RL001) unless it is an array of projected events that belong to the endpoint created, started or events. Private.';

revoke all on function counterfoil.check_ledger_events(jsonb, text) from public;
