-- check_fact: refuses a fact that could not be delivered.
--
-- Promises: returns only for an id, a known event type and a payload that the type allows. What a deferred fact holds
--           is looked at by its materialisation.
-- Locks:    nothing.
-- Raises:   RL001 with DETAIL such as p_facts[3].payload.events[0].type; RL008 over fact_max_bytes.
-- Since:    1

create or replace function counterfoil.check_fact(
    p_event_id text,
    p_event_type text,
    p_payload jsonb,
    p_max_bytes bigint,
    p_at_id text,
    p_at_type text,
    p_at_payload text
)
returns void
language plpgsql
stable
parallel safe
called on null input
security invoker
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_kind text;
    v_index bigint;
    v_field text;
    v_size integer;
begin
    perform counterfoil.check_id(p_event_id, p_at_id);

    v_kind := counterfoil.event_kind(p_event_type);
    if v_kind is null then
        perform counterfoil.raise_invalid_argument(
            case
                when p_event_type is null then format('%s is missing.', p_at_type)
                else format('%s is no known event type.', p_at_type)
            end,
            p_at_type,
            'Give run.events, run.progress, run.waiting, run.resumed, step.receipt or runner.logs.'
        );
    end if;

    if p_payload is null or jsonb_typeof(p_payload) <> 'object' then
        perform counterfoil.raise_invalid_argument(
            format('%s is no JSON object.', p_at_payload), p_at_payload, 'Give the payload as a JSON object.'
        );
    end if;

    v_size := counterfoil.json_bytes(p_payload);
    if v_size > p_max_bytes then
        perform counterfoil.raise_payload_too_large(
            format('%s has %s bytes; a fact may have %s.', p_at_payload, v_size, p_max_bytes),
            p_at_payload, 'Cut it into several facts, or raise the setting fact_max_bytes.'
        );
    end if;
    perform counterfoil.check_document(p_payload, p_at_payload);

    foreach v_field in array array['searchOnly', 'deferredProjection'] loop
        if p_payload ? v_field and jsonb_typeof(p_payload -> v_field) <> 'boolean' then
            perform counterfoil.raise_invalid_argument(
                format('%s.%s is no boolean.', p_at_payload, v_field),
                format('%s.%s', p_at_payload, v_field), 'Give true or false, or leave it out.'
            );
        end if;
    end loop;

    if p_payload -> 'searchOnly' = 'true'::jsonb and v_kind not in ('ingress', 'carrier') and p_event_type <> 'run.progress' then
        perform counterfoil.raise_invalid_argument(
            format('%s facts cannot be search-only.', p_event_type), format('%s.searchOnly', p_at_payload),
            'Only run.events, run.progress, step.receipt and runner.logs can wait in the search lane.'
        );
    end if;

    if v_kind <> 'ingress' or p_payload -> 'deferredProjection' = 'true'::jsonb then
        return;
    end if;

    if jsonb_typeof(p_payload -> 'events') is distinct from 'array' or p_payload -> 'events' = '[]'::jsonb then
        perform counterfoil.raise_invalid_argument(
            format('%s.events is no list of events.', p_at_payload), format('%s.events', p_at_payload),
            'Give at least one event.'
        );
    end if;

    select t.index, t.field
    into v_index, v_field
    from (
        select
            e.ordinality - 1 as index,
            case
                when jsonb_typeof(e.item) <> 'object' then ''
                when
                    jsonb_typeof(e.item -> 'type') is distinct from 'string'
                    or e.item ->> 'type' !~ '^[a-z][a-z0-9_.]*$'
                    or length(e.item ->> 'type') > 200
                    or counterfoil.event_kind(e.item ->> 'type') in ('start', 'terminal')
                    then '.type'
                when e.item ? 'occurredAt' and counterfoil.event_time(e.item -> 'occurredAt') is null then '.occurredAt'
            end as field
        from jsonb_array_elements(p_payload -> 'events') with ordinality as e (item, ordinality)
    ) as t
    where t.field is not null
    order by t.index
    limit 1;
    if found then
        perform counterfoil.raise_invalid_argument(
            format('%s.events[%s]%s is missing or not allowed.', p_at_payload, v_index, v_field),
            format('%s.events[%s]%s', p_at_payload, v_index, v_field),
            case v_field
                when '' then 'Each event is a JSON object.'
                when '.type' then 'Give a type of lower-case letters, digits, underscores and dots, but none that starts or ends a run.'
                else 'Give milliseconds since 1970, or ISO 8601 with seconds and an offset.'
            end
        );
    end if;
end
$function$;

comment on function counterfoil.check_fact(text, text, jsonb, bigint, text, text, text) is
'Refuses a fact whose id, event type or payload is not allowed (RL001, RL008); p_at_… are the paths named in DETAIL. Private.';

revoke all on function counterfoil.check_fact(text, text, jsonb, bigint, text, text, text) from public;
