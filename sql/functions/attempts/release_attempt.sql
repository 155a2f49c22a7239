-- release_attempt: gives a run back at once, for another worker.
--
-- Promises: the attempt is over and not counted against the run: it may use one more. The run can be claimed now, or is
--           cancelled when that was requested. Returns the run's status; a repeat answers as the first did.
-- Locks:    admission_counters, concurrency_keys, the run, the attempt, its queue row, lanes.
-- Raises:   RL001; RL002 run_not_found, attempt_not_found; RL003 attempt_answer; RL004 attempt_lease_not_current.
-- Since:    1

create or replace function counterfoil.release_attempt(
    p_org_id text, p_run_id text, p_attempt integer, p_lease_id text
)
returns text
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
    v_digest bytea := counterfoil.canonical_digest('["release_attempt"]'::jsonb);
    v_run counterfoil.runs;
    v_shards smallint[];
    v_attempt counterfoil.attempts;
    v_now timestamptz;
    v_answer jsonb;
    v_cancelled boolean;
begin
    perform counterfoil.check_attempt_arguments(p_org_id, p_run_id, p_attempt, p_lease_id);
    v_shards := counterfoil.hold_before_run(p_org_id, p_run_id, true);
    v_run := counterfoil.hold_run(p_org_id, p_run_id, true);
    v_attempt := counterfoil.hold_attempt(p_org_id, p_run_id, p_attempt);
    v_now := clock_timestamp();

    v_answer := counterfoil.earlier_answer(v_attempt, p_lease_id, v_digest);
    if v_answer is null then
        perform counterfoil.check_attempt_lease(v_attempt, p_lease_id, v_now);
        v_cancelled := v_run.cancel_requested_at is not null;
        v_answer := jsonb_build_object('runStatus', case when v_cancelled then 'cancelled' else 'waiting' end);
        if v_cancelled then
            perform counterfoil.cancel_now(v_run, v_shards, v_now);
        else
            update counterfoil.runs as r
            set max_attempts = r.max_attempts + 1
            where r.org_id = p_org_id and r.run_id = p_run_id;
            perform counterfoil.park_run(v_run, v_shards, 'retry', null, null, null, v_now, v_now);
        end if;
        perform counterfoil.end_attempt(
            v_attempt, case when v_cancelled then 'cancelled' else 'lost' end, null, null, v_answer, v_digest, v_now
        );
    end if;
    return v_answer ->> 'runStatus';
end
$function$;

comment on function counterfoil.release_attempt(text, text, integer, text) is
'Gives a run back under its attempt''s live lease, to be claimed again at once; the attempt does not count. Returns the run''s status.';

revoke all on function counterfoil.release_attempt(text, text, integer, text) from public;
