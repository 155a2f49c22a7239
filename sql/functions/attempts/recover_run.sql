-- recover_run: does to one run what time demands.
--
-- Promises: what was done: cancelled (the grace time of a requested cancellation is over, or its holder is lost),
--           deadline_exceeded (the run failed), timed_out or failed (the last attempt was lost, and the run failed),
--           requeued (the attempt was lost, another may be claimed now), completed or failed (the terminal that its
--           detached runner had recorded); null when nothing was due or somebody is at it.
-- Locks:    admission_counters, concurrency_keys, the run, all skipping what is locked; the attempt, queue rows, lanes.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.recover_run(p_org_id text, p_run_id text, out outcome text, out attempt integer)
returns record
language plpgsql
volatile
parallel unsafe
strict
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $function$
declare
    v_run counterfoil.runs;
    v_shards smallint[];
    v_attempt counterfoil.attempts;
    v_now timestamptz;
    v_lost boolean;
    v_timed_out boolean;
    v_error jsonb;
begin
    v_shards := counterfoil.hold_before_run(p_org_id, p_run_id, false);
    if v_shards is null then
        return;
    end if;
    v_run := counterfoil.hold_run(p_org_id, p_run_id, false);
    if v_run.run_id is null or v_run.ended_at is not null then
        return;
    end if;
    attempt := v_run.attempt;
    v_attempt := counterfoil.hold_open_attempt(p_org_id, p_run_id);
    v_now := clock_timestamp();
    v_lost := coalesce(v_attempt.lease_expires_at <= v_now, false);
    v_timed_out := v_lost and coalesce(v_attempt.timeout_at <= v_now, false);

    -- The runner has said how it ended, and nobody was left to hear it: that comes before the clock.
    if
        v_attempt.runner_terminal_status in ('completed', 'failed')
        and (v_lost or v_run.deadline_at <= v_now or v_run.cancel_deadline_at <= v_now)
    then
        outcome := counterfoil.end_by_runner(
            v_run, v_shards, v_attempt, v_attempt.runner_terminal, null, v_now
        ) ->> 'outcome';
        return;
    end if;

    if v_run.cancel_requested_at is not null and (v_lost or v_run.cancel_deadline_at <= v_now) then
        outcome := 'cancelled';
    elsif v_run.deadline_at <= v_now then
        outcome := 'deadline_exceeded';
        v_error := jsonb_build_object(
            'message', 'The run did not end before its deadline.', 'type', 'DeadlineExceeded', 'code', 'deadline_exceeded'
        );
    elsif v_lost then
        v_error := case
            when v_timed_out then jsonb_build_object(
                'message', format('Attempt %s took longer than it may.', v_attempt.attempt),
                'type', 'AttemptTimeout', 'code', 'attempt_timeout'
            )
            else jsonb_build_object(
                'message', format('The lease of attempt %s lapsed: its worker was not heard of.', v_attempt.attempt),
                'type', 'AttemptLost', 'code', 'lease_expired'
            )
        end;
        outcome := case
            when v_run.attempt < v_run.max_attempts then 'requeued' when v_timed_out then 'timed_out' else 'failed'
        end;
    else
        return;
    end if;

    if v_attempt.attempt is not null then
        perform counterfoil.end_attempt(
            v_attempt, case when outcome = 'cancelled' then 'cancelled' when v_lost then 'lost' else 'failed' end,
            v_error, null, null, null, v_now
        );
    end if;
    case outcome
        when 'cancelled' then
            perform counterfoil.cancel_now(v_run, v_shards, v_now);
        when 'requeued' then
            perform counterfoil.park_run(v_run, v_shards, 'retry', null, null, null, v_now, v_now);
            update counterfoil.runs as r set error = v_error where r.org_id = p_org_id and r.run_id = p_run_id;
        else
            perform counterfoil.end_run(
                v_run, v_shards, 'failed',
                jsonb_build_object('error', v_error)
                || case
                    when v_run.attempt > 0 then jsonb_build_object('producerAttempt', v_run.attempt) else '{}'::jsonb
                end,
                v_now
            );
    end case;
end
$function$;

comment on function counterfoil.recover_run(text, text) is
'Recovers one run whose lease, grace time or deadline is over; null outcome when nothing was due. Private.';

revoke all on function counterfoil.recover_run(text, text) from public;
