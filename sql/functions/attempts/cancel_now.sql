-- cancel_now: ends a run as cancelled.
--
-- Promises: run.cancelled with the reason that was given, and the end of the run; returns the event id. The attempt, if
--           one is open, is the caller's to end.
-- Locks:    the caller holds what hold_before_run() and hold_run() took.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.cancel_now(p_run counterfoil.runs, p_shards smallint[], p_now timestamptz)
returns text
language sql
volatile
parallel unsafe
called on null input
security invoker
set search_path = pg_catalog, pg_temp
as $function$
    select counterfoil.end_run(
        p_run, p_shards, 'cancelled',
        jsonb_build_object('reason', (p_run).cancel_reason)
        || case when (p_run).attempt > 0 then jsonb_build_object('producerAttempt', (p_run).attempt) else '{}'::jsonb end,
        p_now
    )
$function$;

comment on function counterfoil.cancel_now(counterfoil.runs, smallint[], timestamptz) is
'Ends a run that hold_before_run and hold_run took as cancelled; returns the event id. Private.';

revoke all on function counterfoil.cancel_now(counterfoil.runs, smallint[], timestamptz) from public;
