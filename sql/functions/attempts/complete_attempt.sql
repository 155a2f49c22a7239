-- complete_attempt: ends a run with a result.
--
-- Promises: the terminal fact run.completed and the end of attempt and run, in one transaction. A repeat of an accepted
--           completion writes nothing and answers as the first did (replayed).
-- Locks:    admission_counters, concurrency_keys, the run, the attempt, the queue row of a run that gets the slot, lanes.
-- Raises:   RL001, RL008 (DETAIL: p_completion.path); RL002 run_not_found, attempt_not_found; RL003 attempt_answer when
--           the attempt ended with other contents; RL004 attempt_lease_not_current.
-- Since:    1

create or replace function counterfoil.complete_attempt(
    p_org_id text, p_run_id text, p_attempt integer, p_lease_id text, p_completion jsonb
)
returns table (run_status text, outcome text, event_id text, replayed boolean)
language plpgsql
volatile
parallel unsafe
called on null input
security definer
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_payload jsonb;
    v_digest bytea := counterfoil.canonical_digest(jsonb_build_array('complete_attempt', p_completion));
    v_run counterfoil.runs;
    v_shards smallint[];
    v_attempt counterfoil.attempts;
    v_now timestamptz;
    v_answer jsonb;
    v_replayed boolean := true;
begin
    perform counterfoil.check_attempt_arguments(p_org_id, p_run_id, p_attempt, p_lease_id);
    v_payload := counterfoil.terminal_payload(p_completion, p_attempt, 'p_completion', true);

    v_shards := counterfoil.hold_before_run(p_org_id, p_run_id, true);
    v_run := counterfoil.hold_run(p_org_id, p_run_id, true);
    v_attempt := counterfoil.hold_attempt(p_org_id, p_run_id, p_attempt);
    v_now := clock_timestamp();

    v_answer := counterfoil.earlier_answer(v_attempt, p_lease_id, v_digest);
    if v_answer is null then
        perform counterfoil.check_attempt_lease(v_attempt, p_lease_id, v_now);
        v_replayed := false;
        v_answer := jsonb_build_object(
            'runStatus', 'completed',
            'outcome', 'completed',
            'eventId', counterfoil.end_run(v_run, v_shards, 'completed', v_payload, v_now)
        );
        perform counterfoil.end_attempt(
            v_attempt, 'completed', null, v_payload -> 'sandboxCrashDiagnostic', v_answer, v_digest, v_now
        );
    end if;

    return query select v_answer ->> 'runStatus', v_answer ->> 'outcome', v_answer ->> 'eventId', v_replayed;
end
$function$;

comment on function counterfoil.complete_attempt(text, text, integer, text, jsonb) is
'Ends a run with a result, under its attempt''s live lease: one row (run_status, outcome, event_id, replayed). p_completion may hold result, resultSummary, terminalLogLines, terminalLogContexts, terminalLogIds, terminalProgressEvents, terminalWorkCounterSegment, runtimeTiming.';

revoke all on function counterfoil.complete_attempt(text, text, integer, text, jsonb) from public;
