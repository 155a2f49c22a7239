-- closing_log: the fact that brings the last log lines of an attempt into the journal.
--
-- Promises: the payload of a runner.logs fact in the search lane, so that indexing delays nothing; null without lines.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.closing_log(p_payload jsonb)
returns jsonb
language sql
immutable
parallel safe
called on null input
security invoker
as $function$
    select case when jsonb_array_length(p_payload -> 'terminalLogLines') > 0 then jsonb_build_object(
        'searchOnly', true, 'deferredProjection', true, 'producerAttempt', p_payload -> 'producerAttempt',
        'lines', p_payload -> 'terminalLogLines', 'lineContexts', p_payload -> 'terminalLogContexts',
        'lineIds', p_payload -> 'terminalLogIds'
    ) end
$function$;

comment on function counterfoil.closing_log(jsonb) is
'Payload of the runner.logs fact for the log lines in a payload that terminal_payload() made; null without any. Private.';

revoke all on function counterfoil.closing_log(jsonb) from public;
