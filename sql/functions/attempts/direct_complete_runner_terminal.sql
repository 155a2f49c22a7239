-- direct_complete_runner_terminal: a detached runner records how it ended and ends the run with it.
--
-- Promises: what record_runner_terminal() does, and the end of attempt and run with run.completed or run.failed (or
--           run.cancelled, when that was requested and the runner failed), in one statement; no further attempt. A repeat
--           answers as the first did (replayed).
-- Locks:    admission_counters, concurrency_keys, the run, the attempt, the run's queue row, lanes.
-- Raises:   RL001, RL008 (DETAIL: p_terminal.path); RL002 run_not_found, attempt_not_found; RL003 attempt_answer or
--           runner_terminal when it ended with other contents; RL004 attempt_lease_not_current.
-- Since:    1

create or replace function counterfoil.direct_complete_runner_terminal(
    p_org_id text, p_run_id text, p_attempt integer, p_lease_id text, p_terminal jsonb
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
    v_digest bytea := counterfoil.canonical_digest(jsonb_build_array('direct_complete_runner_terminal', p_terminal));
    v_shards smallint[];
    v_run counterfoil.runs;
    v_attempt counterfoil.attempts;
    v_accepted_at timestamptz;
    v_answer jsonb;
    v_replayed boolean := true;
begin
    perform counterfoil.check_attempt_arguments(p_org_id, p_run_id, p_attempt, p_lease_id);
    perform counterfoil.runner_terminal_payload(p_terminal, p_attempt, 'p_terminal', true);
    if p_terminal ->> 'status' = 'suspended' then
        perform counterfoil.raise_invalid_argument(
            'p_terminal.status is suspended, which ends no run.', 'p_terminal.status',
            'Record it with record_runner_terminal, or say completed or failed.'
        );
    end if;

    v_shards := counterfoil.hold_before_run(p_org_id, p_run_id, true);
    v_run := counterfoil.hold_run(p_org_id, p_run_id, true);
    v_accepted_at := clock_timestamp();
    v_attempt := counterfoil.hold_attempt(p_org_id, p_run_id, p_attempt);

    v_answer := counterfoil.earlier_answer(v_attempt, p_lease_id, v_digest);
    if v_answer is null then
        perform counterfoil.check_runner_fence(v_run, v_attempt, p_lease_id, v_accepted_at);
        perform counterfoil.accept_runner_terminal(v_attempt, p_terminal, v_accepted_at);
        v_answer := counterfoil.end_by_runner(v_run, v_shards, v_attempt, p_terminal, v_digest, v_accepted_at);
        v_replayed := false;
    end if;
    return query select v_answer ->> 'runStatus', v_answer ->> 'outcome', v_answer ->> 'eventId', v_replayed;
end
$function$;

comment on function counterfoil.direct_complete_runner_terminal(text, text, integer, text, jsonb) is
'A detached runner records its terminal and ends the run with it: one row (run_status, outcome, event_id, replayed). p_terminal holds status (completed or failed) and what a completion or failure may hold.';

revoke all on function counterfoil.direct_complete_runner_terminal(text, text, integer, text, jsonb) from public;
