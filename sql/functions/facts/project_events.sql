-- project_events: the ledger events that a fact becomes.
--
-- Promises: a JSON array, in order, the same for the same fact whoever asks: {type, runId, eventId, seq, item,
--           occurredAt (UTC, microseconds), data}. A start or progress fact is one event, a batch of run.events its
--           items, a terminal its progress events, then its log, then itself. Carriers, search-only facts and parks
--           behind a detached runner are none. The caller has seen to it that the fact is not deferred.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.project_events(
    p_event_type text,
    p_event_id text,
    p_run_id text,
    p_seq bigint,
    p_created_at timestamptz,
    p_payload jsonb
)
returns jsonb
language plpgsql
stable
parallel safe
called on null input
security invoker
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_occurred_at text := counterfoil.iso_time(p_created_at);
    v_items jsonb;
    v_type text := p_event_type;
    v_data jsonb;
    v_events jsonb;
begin
    if p_payload -> 'searchOnly' = 'true'::jsonb then
        return '[]'::jsonb;
    end if;

    case counterfoil.event_kind(p_event_type)
        when 'carrier' then
            return '[]'::jsonb;
        when 'ingress' then
            v_items := p_payload -> 'events';
            v_type := null;
        when 'terminal' then
            v_items := counterfoil.closing_events(p_payload);
            v_data := p_payload - array[
                'searchOnly', 'deferredProjection', 'terminalProgressEvents', 'terminalLogLines', 'terminalLogContexts',
                'terminalLogIds', 'terminalWorkCounterSegment', 'producerAttempt'
            ] || jsonb_strip_nulls(jsonb_build_object(
                'attempt', coalesce(p_payload -> 'attempt', p_payload -> 'producerAttempt'),
                'workCounterSegment', p_payload -> 'terminalWorkCounterSegment'
            ));
        else
            if p_event_type = 'run.waiting' and not counterfoil.is_public_wait(p_event_type, p_payload) then
                return '[]'::jsonb;
            end if;
            v_data := p_payload - array['searchOnly', 'deferredProjection'];
    end case;

    if v_items is null or v_items = '[]'::jsonb then
        v_events := '[]'::jsonb;
    else
        select jsonb_agg(jsonb_build_object(
            'type', i.item ->> 'type',
            'runId', p_run_id,
            'eventId', p_event_id,
            'seq', p_seq,
            'item', i.ordinality - 1,
            'occurredAt', coalesce(counterfoil.iso_time(counterfoil.event_time(i.item -> 'occurredAt')), v_occurred_at),
            'data', i.item - array['type', 'occurredAt']
        ) order by i.ordinality)
        into v_events
        from jsonb_array_elements(v_items) with ordinality as i (item, ordinality);
    end if;

    if v_type is not null then
        v_events := v_events || jsonb_build_array(jsonb_build_object(
            'type', v_type,
            'runId', p_run_id,
            'eventId', p_event_id,
            'seq', p_seq,
            'item', jsonb_array_length(v_events),
            'occurredAt', v_occurred_at,
            'data', v_data
        ));
    end if;

    return v_events;
end
$function$;

comment on function counterfoil.project_events(text, text, text, bigint, timestamptz, jsonb) is
'Ledger events of a fact that is not deferred, as a JSON array in order; empty for carriers, search-only facts and detached parks. Private.';

revoke all on function counterfoil.project_events(text, text, text, bigint, timestamptz, jsonb) from public;
