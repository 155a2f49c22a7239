-- strip_log_text: a fact's payload without its log text.
--
-- Promises: the payload less lines, lineContexts and lineIds (its own, and of log.appended items in events[] and
--           terminalProgressEvents[]) and less terminalLogLines, terminalLogContexts and terminalLogIds; all else stays.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.strip_log_text(p_event_type text, p_payload jsonb)
returns jsonb
language sql
stable
parallel safe
strict
security invoker
set search_path = pg_catalog, pg_temp
as $function$
    select
        p_payload
        - array['terminalLogLines', 'terminalLogContexts', 'terminalLogIds']
        - case
            when p_event_type = 'runner.logs' then array['lines', 'lineContexts', 'lineIds'] else '{}'::text []
        end
        || coalesce((
            select jsonb_object_agg(l.name, l.items)
            from (
                select
                    n.name,
                    coalesce(jsonb_agg(
                        case
                            when i.value ->> 'type' = 'log.appended'
                                then i.value - array['lines', 'lineContexts', 'lineIds']
                            else i.value
                        end
                        order by i.ordinality
                    ), '[]') as items
                from (values ('events'), ('terminalProgressEvents')) as n (name)
                cross join lateral jsonb_array_elements(p_payload -> n.name) with ordinality as i (value, ordinality)
                where jsonb_typeof(p_payload -> n.name) = 'array'
                group by n.name
            ) as l
        ), '{}')
$function$;

comment on function counterfoil.strip_log_text(text, jsonb) is
'A fact''s payload without log lines, their contexts and ids, nested ones included; everything else unchanged. Private.';

revoke all on function counterfoil.strip_log_text(text, jsonb) from public;
