-- terminal_payload: what a terminal fact says, from what the attempt's holder sent.
--
-- Promises: {producerAttempt, terminalLogLines, terminalLogContexts} and, where they were sent: result, resultSummary,
--           terminalLogIds, terminalProgressEvents, terminalWorkCounterSegment, runtimeTiming, sandboxCrashDiagnostic,
--           diagnostics. Diagnostics that an older runner could only send as tagged log lines fill the field of their
--           kind where it was not sent: runtime-timing, work-counters and sandbox-crash. Without p_bounded no size counts:
--           what was accepted when more was allowed must not fail whoever comes to it later.
-- Locks:    nothing.
-- Raises:   RL001, RL008 with the JSON path.
-- Since:    1

create or replace function counterfoil.terminal_payload(
    p_document jsonb, p_attempt integer, p_where text, p_bounded boolean
)
returns jsonb
language plpgsql
volatile
parallel unsafe
called on null input
security invoker
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_max_result bigint := counterfoil.setting_integer('result_max_bytes');
    v_max_fact bigint := counterfoil.setting_integer('fact_max_bytes');
    v_payload jsonb;
    v_lifted jsonb;
    v_bytes integer;
    v_bad record;
begin
    if p_document is null or jsonb_typeof(p_document) <> 'object' then
        perform counterfoil.raise_invalid_argument(
            format('%s must be a JSON object.', p_where), p_where, 'Give an object; {} when there is nothing to say.'
        );
    end if;
    if p_bounded and counterfoil.json_bytes(p_document -> 'result') > v_max_result then
        perform counterfoil.raise_payload_too_large(
            format(
                '%s.result has %s bytes; a result may have %s.', p_where, counterfoil.json_bytes(p_document -> 'result'),
                v_max_result
            ),
            format('%s.result', p_where), 'Keep large results elsewhere and return a reference, or raise result_max_bytes.'
        );
    end if;
    perform counterfoil.check_document(p_document, p_where);

    select f.field, f.allowed into v_bad
    from (
        values
            (1, 'terminalProgressEvents', 'an array', 'array'),
            (2, 'terminalWorkCounterSegment', 'an object', 'object'),
            (3, 'runtimeTiming', 'an object', 'object'),
            (4, 'sandboxCrashDiagnostic', 'an object', 'object')
    ) as f (ordinal, field, allowed, type)
    where coalesce(jsonb_typeof(p_document -> f.field), 'null') not in ('null', f.type)
    order by f.ordinal
    limit 1;
    if found then
        perform counterfoil.raise_invalid_argument(
            format('%s.%s must be %s.', p_where, v_bad.field, v_bad.allowed), format('%s.%s', p_where, v_bad.field),
            format('Give %s, or leave it out.', v_bad.allowed)
        );
    end if;
    select e.ordinality - 1 as place into v_bad
    from jsonb_array_elements(nullif(p_document -> 'terminalProgressEvents', 'null'::jsonb)) with ordinality as e (item, ordinality)
    where jsonb_typeof(e.item) <> 'object'
        or coalesce(jsonb_typeof(e.item -> 'type'), 'null') <> 'string'
        or e.item ->> 'type' !~ '^[a-z][a-z0-9_.]*$'
        or counterfoil.event_kind(e.item ->> 'type') in ('start', 'terminal')
    order by e.ordinality
    limit 1;
    if found then
        perform counterfoil.raise_invalid_argument(
            format('%s.terminalProgressEvents[%s] is no progress event.', p_where, v_bad.place),
            format('%s.terminalProgressEvents[%s]', p_where, v_bad.place),
            'Give an object with a string `type` in lower case that neither starts nor ends a run.'
        );
    end if;

    select coalesce(jsonb_object_agg(e.key, e.value), '{}'::jsonb) into v_payload
    from jsonb_each(p_document) as e
    where e.key in (
            'result', 'resultSummary', 'terminalProgressEvents', 'terminalWorkCounterSegment', 'runtimeTiming',
            'sandboxCrashDiagnostic'
        )
        and e.value <> 'null'::jsonb;
    v_payload := jsonb_build_object('producerAttempt', p_attempt)
        || v_payload
        || counterfoil.terminal_logs(p_document, p_where);

    select coalesce(jsonb_object_agg(k.field, v_payload -> 'diagnostics' -> k.name), '{}'::jsonb) into v_lifted
    from (
        values
            ('runtime-timing', 'runtimeTiming'),
            ('work-counters', 'terminalWorkCounterSegment'),
            ('sandbox-crash', 'sandboxCrashDiagnostic')
    ) as k (name, field)
    where v_payload -> 'diagnostics' ? k.name and not v_payload ? k.field;
    v_payload := v_payload || v_lifted;

    -- A failure's error goes into the fact as well.
    v_bytes := counterfoil.json_bytes(v_payload) + coalesce(counterfoil.json_bytes(p_document -> 'error'), 0);
    if p_bounded and v_bytes > v_max_fact then
        perform counterfoil.raise_payload_too_large(
            format('%s has %s bytes; a fact may have %s.', p_where, v_bytes, v_max_fact),
            p_where, 'Send fewer or shorter log lines and events, a smaller error, or raise fact_max_bytes.'
        );
    end if;
    return v_payload;
end
$function$;

comment on function counterfoil.terminal_payload(jsonb, integer, text, boolean) is
'Payload of a terminal fact from a completion or failure, checked and, with p_bounded, within the size settings. Private.';

revoke all on function counterfoil.terminal_payload(jsonb, integer, text, boolean) from public;
