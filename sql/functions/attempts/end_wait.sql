-- end_wait: ends a public wait by a signal.
--
-- Promises: the wait was resumed by the signal, and the signal is used up.
-- Locks:    the caller holds the run, which guards both rows.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.end_wait(
    p_org_id text, p_run_id text, p_wait_id text, p_signal_id text, p_now timestamptz
)
returns void
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
begin
    update counterfoil.run_signals as s
    set consumed_at = p_now
    where s.org_id = p_org_id and s.run_id = p_run_id and s.signal_id = p_signal_id;
    update counterfoil.run_waits as w
    set ended_at = p_now, outcome = 'resumed', signal_id = p_signal_id
    where w.org_id = p_org_id and w.run_id = p_run_id and w.wait_id = p_wait_id;
end
$function$;

comment on function counterfoil.end_wait(text, text, text, text, timestamptz) is
'Ends a public wait of a run that the caller holds by a signal. Private.';

revoke all on function counterfoil.end_wait(text, text, text, text, timestamptz) from public;
