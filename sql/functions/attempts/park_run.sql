-- park_run: takes a run from its worker and lets it wait.
--
-- Promises: the run waits, for the reason given, and its place in the queue says when it can be claimed: at p_wake_at;
--           now, when that has passed; not before somebody resumes it, when p_wake_at is null.
-- Locks:    the caller holds what hold_before_run() and hold_run() took; the run has no queue row, since it runs.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.park_run(
    p_run counterfoil.runs,
    p_shards smallint[],
    p_kind text,
    p_wait_id text,
    p_reason text,
    p_event_name text,
    p_wake_at timestamptz,
    p_now timestamptz
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
    update counterfoil.runs as r
    set
        status = 'waiting',
        wait_kind = p_kind,
        wait_id = p_wait_id,
        wait_reason = p_reason,
        wait_event = p_event_name,
        waiting_since = p_now,
        wake_at = p_wake_at
    where r.org_id = p_run.org_id and r.run_id = p_run.run_id;
    perform counterfoil.add_to_counters(p_run.org_id, p_shards, 0, -1);

    if p_wake_at is not null then
        perform counterfoil.requeue_run(p_run, p_wake_at, p_now);
    end if;
end
$function$;

comment on function counterfoil.park_run(counterfoil.runs, smallint[], text, text, text, text, timestamptz, timestamptz) is
'Makes a running run wait: public, retry or detached_runner, to be claimed from p_wake_at on. Private.';

revoke all on function counterfoil.park_run(counterfoil.runs, smallint[], text, text, text, text, timestamptz, timestamptz)
from public;
