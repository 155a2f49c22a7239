-- strip_log_text: a fact's payload without its log text.
--
-- Promises: the payload less lines, lineContexts and lineIds (its own where it carries logs, and of log.appended items in
--           events[] and terminalProgressEvents[]) and less terminalLogLines, terminalLogContexts and terminalLogIds; all
--           else stays. What older runners said as tagged lines ([diagnostic:NAME] {…}) is lifted into the member
--           diagnostics of the same object first, where it does not hold that name already.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.strip_log_text(p_event_type text, p_payload jsonb)
returns jsonb
language plpgsql
stable
parallel safe
strict
security invoker
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_carries boolean := p_event_type in ('runner.logs', 'run.events');
    v_tagged boolean := strpos(p_payload::text, '[diagnostic:') > 0;
    v_payload jsonb := p_payload - array['terminalLogLines', 'terminalLogContexts', 'terminalLogIds'];
    v_name text;
    v_items jsonb;
begin
    if v_carries then
        v_payload := v_payload - array['lines', 'lineContexts', 'lineIds'];
    end if;
    if v_tagged then
        v_payload := counterfoil.lift_diagnostics(v_payload, p_payload -> 'terminalLogLines');
        if v_carries then
            v_payload := counterfoil.lift_diagnostics(v_payload, p_payload -> 'lines');
        end if;
    end if;

    foreach v_name in array array['events', 'terminalProgressEvents'] loop
        if jsonb_typeof(v_payload -> v_name) = 'array' then
            select coalesce(jsonb_agg(
                case
                    when i.value ->> 'type' is distinct from 'log.appended' then i.value
                    when v_tagged
                        then counterfoil.lift_diagnostics(
                            i.value - array['lines', 'lineContexts', 'lineIds'], i.value -> 'lines'
                        )
                    else i.value - array['lines', 'lineContexts', 'lineIds']
                end
                order by i.ordinality
            ), '[]')
            into v_items
            from jsonb_array_elements(v_payload -> v_name) with ordinality as i (value, ordinality);
            v_payload := v_payload || jsonb_build_object(v_name, v_items);
        end if;
    end loop;
    return v_payload;
end
$function$;

comment on function counterfoil.strip_log_text(text, jsonb) is
'A fact''s payload without log lines, their contexts and ids, nested ones included, with the diagnostics of tagged lines as fields; everything else unchanged. Private.';

revoke all on function counterfoil.strip_log_text(text, jsonb) from public;
