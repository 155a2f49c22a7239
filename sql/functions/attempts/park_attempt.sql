-- park_attempt: lets a run wait behind a detached runner and frees its worker.
--
-- Promises: run.waiting {"kind": "detached_runner"}, which is transport only: no public wait. The attempt is claimable
--           again once the runner has recorded its terminal, or after p_wake_after, the hard ceiling (parked). When the
--           terminal was recorded already, nothing is written and the attempt goes on (runner_ended). A run whose
--           cancellation was requested ends instead (cancelled). A repeat answers parked.
-- Locks:    admission_counters, concurrency_keys, the run, the attempt, its queue row, lanes.
-- Raises:   RL001; RL002 run_not_found, attempt_not_found; RL004 attempt_lease_not_current.
-- Since:    1

create or replace function counterfoil.park_attempt(
    p_org_id text, p_run_id text, p_attempt integer, p_lease_id text, p_wake_after interval default null
)
returns table (outcome text, runner_terminal jsonb)
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
    v_shards smallint[];
    v_run counterfoil.runs;
    v_attempt counterfoil.attempts;
    v_now timestamptz;
begin
    perform counterfoil.check_attempt_arguments(p_org_id, p_run_id, p_attempt, p_lease_id);
    perform counterfoil.check_wait(null, null, p_wake_after, null);

    v_shards := counterfoil.hold_before_run(p_org_id, p_run_id, true);
    v_run := counterfoil.hold_run(p_org_id, p_run_id, true);
    v_attempt := counterfoil.hold_attempt(p_org_id, p_run_id, p_attempt);
    v_now := clock_timestamp();

    if v_attempt.status = 'waiting' and v_attempt.lease_id = p_lease_id and v_run.wait_kind = 'detached_runner' then
        return query select 'parked'::text, null::jsonb;
        return;
    end if;
    perform counterfoil.check_attempt_lease(v_attempt, p_lease_id, v_now);
    if v_attempt.runner_terminal_status in ('completed', 'failed') or v_attempt.runner_terminal_at >= v_attempt.claimed_at then
        return query select 'runner_ended'::text, v_attempt.runner_terminal;
        return;
    elsif v_run.cancel_requested_at is not null then
        perform counterfoil.end_attempt(v_attempt, 'cancelled', null, null, null, null, v_now);
        perform counterfoil.cancel_now(v_run, v_shards, v_now);
        return query select 'cancelled'::text, null::jsonb;
        return;
    end if;

    update counterfoil.attempts as a
    set status = 'waiting', lease_expires_at = null, timeout_at = null
    where a.org_id = p_org_id and a.run_id = p_run_id and a.attempt = p_attempt;
    perform counterfoil.park_run(v_run, v_shards, 'detached_runner', null, null, null, v_now + p_wake_after, v_now);
    perform counterfoil.write_facts(
        p_org_id, array[p_run_id], array['run.waiting:' || gen_random_uuid()::text], array['run.waiting'],
        array[jsonb_build_object('kind', 'detached_runner', 'attempt', p_attempt)], v_now
    );
    return query select 'parked'::text, null::jsonb;
end
$function$;

comment on function counterfoil.park_attempt(text, text, integer, text, interval) is
'Lets a run wait behind a detached runner, under its attempt''s live lease, at most p_wake_after: one row (outcome, runner_terminal), outcome parked, runner_ended or cancelled.';

revoke all on function counterfoil.park_attempt(text, text, integer, text, interval) from public;
