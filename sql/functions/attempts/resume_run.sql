-- resume_run: brings a run the event it waits for, or will wait for.
--
-- Promises: a public wait for that event (null: a wait without an event) ends, and the run can be claimed now (resumed); a
--           run that does not wait for it keeps the resume for the wait that does (stored). The same p_signal_id with the
--           same contents is the same resume, whatever became of it (replayed). status is the run's status.
-- Locks:    the run, its signal, its wait, its queue row.
-- Raises:   RL001, RL008 p_payload; RL002 run_not_found; RL003 signal when the id came with other contents; RL005 run_ended.
-- Since:    1

create or replace function counterfoil.resume_run(
    p_org_id text, p_run_id text, p_event_name text, p_payload jsonb, p_signal_id text
)
returns table (outcome text, status text)
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
    v_max_bytes bigint := counterfoil.setting_integer('fact_max_bytes');
    v_run counterfoil.runs;
    v_signal counterfoil.run_signals;
    v_now timestamptz;
    v_waits boolean;
begin
    perform counterfoil.check_id(p_org_id, 'p_org_id');
    perform counterfoil.check_id(p_run_id, 'p_run_id');
    perform counterfoil.check_id(p_signal_id, 'p_signal_id');
    if p_event_name is not null then
        perform counterfoil.check_id(p_event_name, 'p_event_name');
    end if;
    if counterfoil.json_bytes(p_payload) > v_max_bytes then
        perform counterfoil.raise_payload_too_large(
            format('p_payload has %s bytes; a resume may bring %s.', counterfoil.json_bytes(p_payload), v_max_bytes),
            'p_payload', 'Keep large payloads elsewhere and send a reference, or raise fact_max_bytes.'
        );
    end if;
    perform counterfoil.check_document(p_payload, 'p_payload');

    v_run := counterfoil.hold_run(p_org_id, p_run_id, true);
    v_now := clock_timestamp();

    select s.* into v_signal
    from counterfoil.run_signals as s
    where s.org_id = p_org_id and s.run_id = p_run_id and s.signal_id = p_signal_id;
    if found then
        if v_signal.event_name <> v_event_name or v_signal.payload is distinct from p_payload then
            perform counterfoil.raise_identity_conflict(
                format('Run %s has had a resume %s with another event or payload.', p_run_id, p_signal_id), 'signal',
                'Repeat the first resume unchanged, or choose another p_signal_id.'
            );
        end if;
        return query select 'replayed'::text, v_run.status;
        return;
    elsif v_run.ended_at is not null then
        perform counterfoil.raise_invalid_state(
            format('Run %s is %s: nothing can resume it.', p_run_id, v_run.status), 'run_ended', 'Launch another run.'
        );
    end if;

    -- Whoever waits for the run with an older snapshot (repeatable read) would miss the signal and the place in the queue:
    -- a new version of the row makes that call fail, to be repeated.
    update counterfoil.runs as r set wake_at = r.wake_at where r.org_id = p_org_id and r.run_id = p_run_id;
    insert into counterfoil.run_signals (org_id, run_id, signal_id, event_name, payload, received_at)
    values (p_org_id, p_run_id, p_signal_id, v_event_name, p_payload, v_now);
    v_waits := exists (
        select
        from counterfoil.run_waits as w
        where w.org_id = p_org_id
            and w.run_id = p_run_id
            and w.wait_id = v_run.wait_id
            and w.event_name = v_event_name
            and w.outcome is null
    );
    if v_waits then
        perform counterfoil.end_wait(p_org_id, p_run_id, v_run.wait_id, p_signal_id, v_now);
        perform counterfoil.requeue_run(v_run, v_now, v_now);
    end if;
    return query select case when v_waits then 'resumed' else 'stored' end, v_run.status;
end
$function$;

comment on function counterfoil.resume_run(text, text, text, jsonb, text) is
'Ends a run''s public wait for an event, with a payload, or keeps the resume for a later wait: one row (outcome, status), outcome resumed, stored or replayed.';

revoke all on function counterfoil.resume_run(text, text, text, jsonb, text) from public;
