-- report_attempt: keeps what came with the failure of an attempt that is followed by another.
--
-- Promises: progress events, log lines and the work-counter segment become one run.events fact, whose last event,
--           attempt.failed, has the segment; the lines also a runner.logs fact for the journal. Nothing without them: what
--           failed and when the run is tried again is told by the run.
-- Locks:    the caller holds the run; then lanes.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.report_attempt(p_run counterfoil.runs, p_payload jsonb, p_now timestamptz)
returns void
language plpgsql
volatile
parallel unsafe
called on null input
security invoker
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_id text := gen_random_uuid()::text;
    v_events jsonb := counterfoil.closing_events(p_payload);
    v_log jsonb := counterfoil.closing_log(p_payload);
begin
    if p_payload ? 'terminalWorkCounterSegment' then
        v_events := v_events || jsonb_build_array(jsonb_build_object(
            'type', 'attempt.failed', 'attempt', p_payload -> 'producerAttempt', 'error', p_payload -> 'error',
            'workCounterSegment', p_payload -> 'terminalWorkCounterSegment'
        ));
    end if;
    if v_events = '[]'::jsonb then
        return;
    end if;

    perform counterfoil.write_facts(
        p_run.org_id,
        array_fill(p_run.run_id, array[1 + (v_log is not null)::integer]),
        array_remove(array['run.events:' || v_id, case when v_log is not null then 'runner.logs:' || v_id end], null),
        array_remove(array['run.events', case when v_log is not null then 'runner.logs' end], null),
        array_remove(array[jsonb_build_object('events', v_events), v_log], null),
        p_now
    );
end
$function$;

comment on function counterfoil.report_attempt(counterfoil.runs, jsonb, timestamptz) is
'Writes the progress events, log lines and work-counter segment that came with the failure of an attempt that is retried, as facts of the run. Private.';

revoke all on function counterfoil.report_attempt(counterfoil.runs, jsonb, timestamptz) from public;
