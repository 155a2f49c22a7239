-- suspend_attempt: lets a run wait in public and frees its worker.
--
-- Promises: with run.waiting {reason, event, wakeAt} the run waits until a resume of that event comes or p_wake_after has
--           passed, then the same attempt is claimable again (suspended). A resume that came before is taken at once and
--           the attempt goes on (resumed_already, with {eventName, payload, timedOut}). A wait that has ended before, in
--           this attempt or an earlier one, is known by p_wait_id and answers as it ended: give one, and a repeat is safe.
--           A run whose cancellation was requested ends instead (cancelled).
-- Locks:    admission_counters, concurrency_keys, the run, the attempt, a signal, its queue row, lanes.
-- Raises:   RL001; RL002 run_not_found, attempt_not_found; RL004 attempt_lease_not_current.
-- Since:    1

create or replace function counterfoil.suspend_attempt(
    p_org_id text,
    p_run_id text,
    p_attempt integer,
    p_lease_id text,
    p_reason text,
    p_event_name text default null,
    p_wake_after interval default null,
    p_wait_id text default null
)
returns table (outcome text, resumed jsonb)
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
    v_event_name text := coalesce(p_event_name, '');
    v_wait_id text := coalesce(p_wait_id, gen_random_uuid()::text);
    v_shards smallint[];
    v_run counterfoil.runs;
    v_attempt counterfoil.attempts;
    v_now timestamptz;
    v_wake_at timestamptz;
    v_signal_id text;
    v_answer jsonb;
begin
    perform counterfoil.check_attempt_arguments(p_org_id, p_run_id, p_attempt, p_lease_id);
    perform counterfoil.check_wait(p_reason, p_event_name, p_wake_after, p_wait_id);

    v_shards := counterfoil.hold_before_run(p_org_id, p_run_id, true);
    v_run := counterfoil.hold_run(p_org_id, p_run_id, true);
    v_attempt := counterfoil.hold_attempt(p_org_id, p_run_id, p_attempt);
    v_now := clock_timestamp();

    -- The reply to an accepted suspend was lost: it still waits, under the lease it was suspended with.
    if
        v_attempt.status = 'waiting' and v_attempt.lease_id = p_lease_id and v_run.wait_kind = 'public'
        and v_run.wait_id = coalesce(p_wait_id, v_run.wait_id)
    then
        return query select 'suspended'::text, null::jsonb;
        return;
    end if;
    perform counterfoil.check_attempt_lease(v_attempt, p_lease_id, v_now);

    if v_run.cancel_requested_at is not null then
        perform counterfoil.end_attempt(v_attempt, 'cancelled', null, null, null, null, v_now);
        perform counterfoil.cancel_now(v_run, v_shards, v_now);
        return query select 'cancelled'::text, null::jsonb;
        return;
    end if;

    v_answer := counterfoil.wait_answer(p_org_id, p_run_id, v_wait_id);
    if v_answer is null then
        v_wake_at := v_now + p_wake_after;
        insert into counterfoil.run_waits as w (org_id, run_id, wait_id, event_name, reason, began_at, wake_at)
        values (p_org_id, p_run_id, v_wait_id, v_event_name, p_reason, v_now, v_wake_at)
        on conflict on constraint run_waits_pkey do update
        set event_name = excluded.event_name, reason = excluded.reason, wake_at = excluded.wake_at;

        select s.signal_id into v_signal_id
        from counterfoil.run_signals as s
        where s.org_id = p_org_id and s.run_id = p_run_id and s.event_name = v_event_name and s.consumed_at is null
        order by s.received_at
        limit 1
        for no key update;
        if found then
            perform counterfoil.end_wait(p_org_id, p_run_id, v_wait_id, v_signal_id, v_now);
            v_answer := counterfoil.wait_answer(p_org_id, p_run_id, v_wait_id);
        end if;
    end if;
    if v_answer is not null then
        return query select 'resumed_already'::text, v_answer;
        return;
    end if;

    update counterfoil.attempts as a
    set status = 'waiting', lease_expires_at = null, timeout_at = null
    where a.org_id = p_org_id and a.run_id = p_run_id and a.attempt = p_attempt;
    perform counterfoil.park_run(v_run, v_shards, 'public', v_wait_id, p_reason, p_event_name, v_wake_at, v_now);
    perform counterfoil.write_facts(
        p_org_id, array[p_run_id], array['run.waiting:' || gen_random_uuid()::text], array['run.waiting'],
        array[jsonb_build_object(
            'attempt', p_attempt, 'waitId', v_wait_id, 'reason', p_reason, 'event', p_event_name,
            'wakeAt', counterfoil.iso_time(v_wake_at)
        )],
        v_now
    );
    return query select 'suspended'::text, null::jsonb;
end
$function$;

comment on function counterfoil.suspend_attempt(text, text, integer, text, text, text, interval, text) is
'Lets a run wait for an event, a time, or a plain resume, under its attempt''s live lease: one row (outcome, resumed), outcome suspended, resumed_already or cancelled. p_wait_id names the wait within the play, so that every attempt gets the same answer.';

revoke all on function counterfoil.suspend_attempt(text, text, integer, text, text, text, interval, text) from public;
