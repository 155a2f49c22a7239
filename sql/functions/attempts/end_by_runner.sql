-- end_by_runner: ends a run by the terminal that its detached runner recorded.
--
-- Promises: {runStatus, outcome, eventId}; the run ends as the runner did, or as cancelled where that was requested and
--           the runner failed; the attempt with it. The answer is kept for a repeat where there is a digest.
-- Locks:    the caller holds what hold_before_run() and hold_run() took, and the attempt.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.end_by_runner(
    p_run counterfoil.runs,
    p_shards smallint[],
    p_attempt counterfoil.attempts,
    p_terminal jsonb,
    p_digest bytea,
    p_now timestamptz
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
    v_payload jsonb := counterfoil.runner_terminal_payload(p_terminal, p_attempt.attempt, 'p_terminal', false);
    v_status text := p_terminal ->> 'status';
    v_answer jsonb;
begin
    if v_status = 'failed' and p_run.cancel_requested_at is not null then
        v_status := 'cancelled';
        v_payload := v_payload || jsonb_build_object('reason', p_run.cancel_reason);
    end if;
    v_answer := jsonb_build_object(
        'runStatus', v_status,
        'outcome', v_status,
        'eventId', counterfoil.end_run(p_run, p_shards, v_status, v_payload, p_now)
    );
    perform counterfoil.end_attempt(
        p_attempt, v_status, v_payload -> 'error', v_payload -> 'sandboxCrashDiagnostic',
        case when p_digest is not null then v_answer end, p_digest, p_now
    );
    return v_answer;
end
$function$;

comment on function counterfoil.end_by_runner(
    counterfoil.runs, smallint[], counterfoil.attempts, jsonb, bytea, timestamptz
) is
'Ends a run and its attempt by the terminal of its detached runner; returns the answer. Private.';

revoke all on function counterfoil.end_by_runner(
    counterfoil.runs, smallint[], counterfoil.attempts, jsonb, bytea, timestamptz
) from public;
