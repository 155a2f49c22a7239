-- record_runner_terminal: a detached runner records how it ended.
--
-- Promises: the terminal {status: completed, failed or suspended, and what a completion or failure may hold} is kept on the
--           attempt, with the database's time at which it was accepted, fixed before the payload is. A run parked behind
--           the runner can be claimed now, so that a worker ends it (recorded). A repeat changes nothing (replayed).
-- Locks:    the run, then the attempt; the queue row of the run.
-- Raises:   RL001, RL008 (DETAIL: p_terminal.path); RL002 run_not_found, attempt_not_found; RL003 runner_terminal when an
--           authoritative one with other contents is there; RL004 attempt_lease_not_current.
-- Since:    1

create or replace function counterfoil.record_runner_terminal(
    p_org_id text, p_run_id text, p_attempt integer, p_lease_id text, p_terminal jsonb
)
returns table (outcome text, run_status text, accepted_at timestamptz)
language plpgsql
volatile
parallel unsafe
called on null input
security definer
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_run counterfoil.runs;
    v_attempt counterfoil.attempts;
    v_accepted_at timestamptz;
begin
    perform counterfoil.check_attempt_arguments(p_org_id, p_run_id, p_attempt, p_lease_id);
    perform counterfoil.runner_terminal_payload(p_terminal, p_attempt, 'p_terminal', true);

    v_run := counterfoil.hold_run(p_org_id, p_run_id, true);
    v_accepted_at := clock_timestamp();
    v_attempt := counterfoil.hold_attempt(p_org_id, p_run_id, p_attempt);

    if v_attempt.lease_id = p_lease_id and v_attempt.runner_terminal = p_terminal then
        return query select 'replayed'::text, v_run.status, v_attempt.runner_terminal_at;
        return;
    end if;
    perform counterfoil.check_runner_fence(v_run, v_attempt, p_lease_id, v_accepted_at);
    perform counterfoil.accept_runner_terminal(v_attempt, p_terminal, v_accepted_at);
    if v_run.status = 'waiting' then
        perform counterfoil.requeue_run(v_run, v_accepted_at, v_accepted_at);
    end if;
    return query select 'recorded'::text, v_run.status, v_accepted_at;
end
$function$;

comment on function counterfoil.record_runner_terminal(text, text, integer, text, jsonb) is
'A detached runner records its terminal on its attempt: one row (outcome, run_status, accepted_at), outcome recorded or replayed. p_terminal holds status (completed, failed or suspended) and what a completion or failure may hold.';

revoke all on function counterfoil.record_runner_terminal(text, text, integer, text, jsonb) from public;
