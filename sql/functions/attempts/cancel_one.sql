-- cancel_one: cancels one run, the work behind cancel_run.
--
-- Promises: cancelled (ended now), requested (marked; its holder is told) or already_ended, and the run's status after it.
--           The first reason and the first grace time count.
-- Locks:    admission_counters, concurrency_keys, the run, the attempt, queue rows, lanes.
-- Raises:   RL002 run_not_found.
-- Since:    1

create or replace function counterfoil.cancel_one(
    p_org_id text, p_run_id text, p_reason text, out outcome text, out status text
)
returns record
language plpgsql
volatile
parallel unsafe
called on null input
security invoker
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
    v_grace bigint := counterfoil.setting_integer('cancel_grace_seconds');
begin
    v_shards := counterfoil.hold_before_run(p_org_id, p_run_id, true);
    v_run := counterfoil.hold_run(p_org_id, p_run_id, true);
    v_now := clock_timestamp();
    status := v_run.status;
    if v_run.ended_at is not null then
        outcome := 'already_ended';
        return;
    end if;

    v_attempt := counterfoil.hold_open_attempt(p_org_id, p_run_id);
    if v_run.status = 'waiting' and v_attempt.runner_terminal_status in ('completed', 'failed') then
        -- Parked behind a runner that had ended before anybody thought of cancelling.
        outcome := 'already_ended';
        status := counterfoil.end_by_runner(v_run, v_shards, v_attempt, v_attempt.runner_terminal, null, v_now)
            ->> 'runStatus';
        return;
    end if;

    if v_run.cancel_requested_at is null then
        update counterfoil.runs as r
        set
            cancel_requested_at = v_now,
            cancel_reason = p_reason,
            cancel_deadline_at = case when r.status = 'running' then v_now + make_interval(secs => v_grace) end
        where r.org_id = p_org_id and r.run_id = p_run_id
        returning r.* into v_run;
    end if;
    if v_run.status = 'running' then
        outcome := 'requested';
        return;
    end if;

    if v_attempt.attempt is not null then
        perform counterfoil.end_attempt(v_attempt, 'cancelled', null, null, null, null, v_now);
    end if;
    perform counterfoil.cancel_now(v_run, v_shards, v_now);
    outcome := 'cancelled';
    status := 'cancelled';
end
$function$;

comment on function counterfoil.cancel_one(text, text, text) is
'Cancels one run; outcome cancelled, requested or already_ended, and the status after it. Private.';

revoke all on function counterfoil.cancel_one(text, text, text) from public;
