-- end_run: ends a run, the one place that does.
--
-- Promises: the terminal fact, where it has log lines a runner.logs fact behind it that brings them into the journal, the
--           run's status, result and error, its place in the queue gone, its wait and its slot of the concurrency key
--           ended, and the counts of queued and active runs; returns the terminal's event id. The run's open attempt, if
--           any, is the caller's to end.
-- Locks:    the caller holds what hold_before_run() and hold_run() took; then the queue row by key, then lanes; a
--           schedule that waits for the end, passing it over when it is locked.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.end_run(
    p_run counterfoil.runs,
    p_shards smallint[],
    p_status text,
    p_payload jsonb,
    p_now timestamptz
)
returns text
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
    v_event_type text := 'run.' || p_status;
    v_event_id text := v_event_type || ':' || gen_random_uuid()::text;
    v_slotless boolean;
    v_logs jsonb := counterfoil.closing_log(p_payload);
begin
    if v_logs is not null then
        -- The journal gets the last lines by a fact of their own, in the search lane, so that indexing delays no end.
        perform counterfoil.write_facts(
            p_run.org_id, array[p_run.run_id, p_run.run_id],
            array[v_event_id, 'runner.logs:' || split_part(v_event_id, ':', 2)], array[v_event_type, 'runner.logs'],
            array[p_payload, v_logs], p_now
        );
    else
        perform counterfoil.write_facts(
            p_run.org_id, array[p_run.run_id], array[v_event_id], array[v_event_type], array[p_payload], p_now
        );
    end if;

    update counterfoil.runs as r
    set
        status = p_status,
        ended_at = p_now,
        terminal_event_id = v_event_id,
        result = p_payload -> 'result',
        result_summary = p_payload -> 'resultSummary',
        error = p_payload -> 'error',
        wait_kind = null,
        wait_id = null,
        wait_reason = null,
        wait_event = null,
        waiting_since = null,
        wake_at = null
    where r.org_id = p_run.org_id and r.run_id = p_run.run_id;

    delete from counterfoil.run_queue as q
    where q.org_id = p_run.org_id and q.run_id = p_run.run_id
    returning q.slotless into v_slotless;

    perform counterfoil.add_to_counters(
        p_run.org_id, p_shards, -(p_run.status = 'queued')::integer, -(p_run.status = 'running')::integer
    );
    if p_run.concurrency_key is not null then
        if counterfoil.end_with_key(p_run.org_id, p_run.concurrency_key, not coalesce(v_slotless, false)) then
            perform counterfoil.wake('attempts');
        end if;
    end if;
    if p_run.run_id like 'schedule:%' then
        perform counterfoil.wake_buffered(p_run.org_id, p_run.run_id, p_now);
    end if;
    return v_event_id;
end
$function$;

comment on function counterfoil.end_run(counterfoil.runs, smallint[], text, jsonb, timestamptz) is
'Ends a run that hold_before_run and hold_run took, as completed, failed or cancelled, with p_payload as its terminal fact; returns the event id. Private.';

revoke all on function counterfoil.end_run(counterfoil.runs, smallint[], text, jsonb, timestamptz) from public;
