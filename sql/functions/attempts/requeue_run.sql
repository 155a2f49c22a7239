-- requeue_run: gives a started run a place in the queue, or another time to the one it has.
--
-- Promises: the run can be claimed from p_ready_at on, at its old age: before what came after it, whatever it waited for or
--           whoever lost it. It kept the slot of its concurrency key.
-- Locks:    the caller holds the run; its queue row by key.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.requeue_run(
    p_run counterfoil.runs, p_ready_at timestamptz, p_now timestamptz
)
returns void
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
begin
    insert into counterfoil.run_queue (
        org_id, run_id, state, slotless, release_lane, play_name, priority, ready_at, queued_at, concurrency_key
    )
    values (
        p_run.org_id, p_run.run_id, case when p_ready_at > p_now then 'sleeping' else 'ready' end, false,
        -- Of launches in one call the queue tells ages by microseconds, which the run has not: begun comes first.
        p_run.release_lane, p_run.play_name, p_run.priority, p_ready_at, p_run.available_at - interval '1 second',
        p_run.concurrency_key
    )
    on conflict on constraint run_queue_pkey do update
    set state = excluded.state, ready_at = excluded.ready_at;
    if p_ready_at <= p_now then
        perform counterfoil.wake('attempts');
    end if;
end
$function$;

comment on function counterfoil.requeue_run(counterfoil.runs, timestamptz, timestamptz) is
'Gives a started run a place in the queue from p_ready_at on. Private.';

revoke all on function counterfoil.requeue_run(counterfoil.runs, timestamptz, timestamptz) from public;
