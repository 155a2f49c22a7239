-- fail_attempt: ends an attempt with an error.
--
-- Promises: with a retryable error and attempts left the run waits for its next attempt, after a backoff with jitter
--           (retry_scheduled), and what progress events, log lines and work counters came along are kept; else run.failed
--           and the end of the run (failed), or run.cancelled when its cancellation was requested (cancelled). A repeat of
--           an accepted failure writes nothing and answers as the first did (replayed).
--           With preserveRunnerTerminal it does not overwrite a detached runner's terminal that was recorded after the
--           claim; a resumable `suspended` one is superseded.
-- Locks:    admission_counters, concurrency_keys, the run, the attempt, the queue row of the run or of one that gets the
--           slot, lanes.
-- Raises:   RL001, RL008 (DETAIL: p_failure.path); RL002 run_not_found, attempt_not_found; RL003 attempt_answer when the
--           attempt ended with other contents; RL004 attempt_lease_not_current; RL005 runner_terminal_recorded.
-- Since:    1

create or replace function counterfoil.fail_attempt(
    p_org_id text, p_run_id text, p_attempt integer, p_lease_id text, p_failure jsonb
)
returns table (run_status text, outcome text, event_id text, next_attempt_at timestamptz, replayed boolean)
language plpgsql
volatile
parallel unsafe
called on null input
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $function$
declare
    v_payload jsonb;
    v_error jsonb;
    v_digest bytea := counterfoil.canonical_digest(jsonb_build_array('fail_attempt', p_failure));
    v_run counterfoil.runs;
    v_shards smallint[];
    v_attempt counterfoil.attempts;
    v_now timestamptz;
    v_next timestamptz;
    v_status text;
    v_answer jsonb;
    v_replayed boolean := true;
begin
    perform counterfoil.check_attempt_arguments(p_org_id, p_run_id, p_attempt, p_lease_id);
    v_payload := counterfoil.terminal_payload(p_failure, p_attempt, 'p_failure', true);
    v_error := counterfoil.failure_error(p_failure, 'p_failure');
    v_payload := v_payload || jsonb_build_object('error', v_error);

    v_shards := counterfoil.hold_before_run(p_org_id, p_run_id, true);
    v_run := counterfoil.hold_run(p_org_id, p_run_id, true);
    v_attempt := counterfoil.hold_attempt(p_org_id, p_run_id, p_attempt);
    v_now := clock_timestamp();

    v_answer := counterfoil.earlier_answer(v_attempt, p_lease_id, v_digest);
    if v_answer is null then
        perform counterfoil.check_attempt_lease(v_attempt, p_lease_id, v_now);
        if
            p_failure -> 'preserveRunnerTerminal' = 'true'::jsonb
            and v_attempt.runner_terminal_status in ('completed', 'failed')
            and v_attempt.runner_terminal_at >= v_attempt.claimed_at
        then
            perform counterfoil.raise_invalid_state(
                format('The runner of attempt %s of run %s has recorded its own terminal.', p_attempt, p_run_id),
                'runner_terminal_recorded', 'Read the recorded terminal from the attempt''s context and end the run with it.'
            );
        end if;

        v_replayed := false;
        if v_run.cancel_requested_at is null then
            v_next := counterfoil.next_attempt_at(v_run, v_error, v_now);
        end if;
        if v_next is not null then
            perform counterfoil.report_attempt(v_run, v_payload, v_now);
            perform counterfoil.park_run(v_run, v_shards, 'retry', null, null, null, v_next, v_now);
            update counterfoil.runs as r set error = v_error where r.org_id = p_org_id and r.run_id = p_run_id;
            v_answer := jsonb_build_object('runStatus', 'waiting', 'outcome', 'retry_scheduled', 'nextAttemptAt', v_next);
        else
            v_status := case when v_run.cancel_requested_at is null then 'failed' else 'cancelled' end;
            if v_status = 'cancelled' then
                v_payload := v_payload || jsonb_build_object('reason', v_run.cancel_reason);
            end if;
            v_answer := jsonb_build_object(
                'runStatus', v_status,
                'outcome', v_status,
                'eventId', counterfoil.end_run(v_run, v_shards, v_status, v_payload, v_now)
            );
        end if;
        perform counterfoil.end_attempt(
            v_attempt, case when v_status = 'cancelled' then 'cancelled' else 'failed' end, v_error,
            v_payload -> 'sandboxCrashDiagnostic', v_answer, v_digest, v_now
        );
    end if;

    return query
    select
        v_answer ->> 'runStatus', v_answer ->> 'outcome', v_answer ->> 'eventId',
        (v_answer ->> 'nextAttemptAt')::timestamptz, v_replayed;
end
$function$;

comment on function counterfoil.fail_attempt(text, text, integer, text, jsonb) is
'Ends an attempt with an error, under its live lease: one row (run_status, outcome, event_id, next_attempt_at, replayed), outcome retry_scheduled, failed or cancelled. p_failure holds error {message, type, code, retryable, details} and may hold what a completion may, sandboxCrashDiagnostic and preserveRunnerTerminal.';

revoke all on function counterfoil.fail_attempt(text, text, integer, text, jsonb) from public;
