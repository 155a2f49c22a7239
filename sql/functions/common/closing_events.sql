-- closing_events: what an attempt's holder sent for the ledger with its end.
--
-- Promises: the progress events, then one log.appended event with the last lines where there are any; [] for neither.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.closing_events(p_payload jsonb)
returns jsonb
language sql
immutable
parallel safe
called on null input
security invoker
as $function$
    select case
        when jsonb_typeof(p_payload -> 'terminalProgressEvents') = 'array' then p_payload -> 'terminalProgressEvents'
        else '[]'::jsonb
    end || case
        when jsonb_typeof(p_payload -> 'terminalLogLines') = 'array' and p_payload -> 'terminalLogLines' <> '[]'::jsonb
            then jsonb_build_array(jsonb_strip_nulls(jsonb_build_object(
                'type', 'log.appended', 'channel', 'log', 'producerAttempt', p_payload -> 'producerAttempt'
            )) || jsonb_build_object(
                'lines', p_payload -> 'terminalLogLines',
                'lineContexts', coalesce(p_payload -> 'terminalLogContexts', '[]'::jsonb)
            ) || case
                when jsonb_typeof(p_payload -> 'terminalLogIds') = 'array'
                    then jsonb_build_object('lineIds', p_payload -> 'terminalLogIds')
                else '{}'::jsonb
            end)
        else '[]'::jsonb
    end
$function$;

comment on function counterfoil.closing_events(jsonb) is
'Progress events and the log.appended event of a payload that terminal_payload() made, as items of events[]. Private.';

revoke all on function counterfoil.closing_events(jsonb) from public;
