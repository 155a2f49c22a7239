-- next_attempt_at: when a failed run is tried again, if at all.
--
-- Promises: a time after a backoff with jitter, by the launch's retryPolicy where it has one, else by the settings; null
--           when attempts are used up, the error says it is not retryable, the policy names its type or code, or the
--           deadline would have passed.
-- Locks:    nothing; the caller holds the run.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.next_attempt_at(p_run counterfoil.runs, p_error jsonb, p_now timestamptz)
returns timestamptz
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
    v_policy jsonb;
    v_at timestamptz;
begin
    if p_run.attempt >= p_run.max_attempts or p_error -> 'retryable' = 'false'::jsonb then
        return null;
    end if;
    select l.launch -> 'retryPolicy' into v_policy
    from counterfoil.launches as l
    where l.org_id = p_run.org_id and l.run_id = p_run.run_id;
    if v_policy -> 'nonRetryableErrors' ?| array_remove(array[p_error ->> 'type', p_error ->> 'code'], null) then
        return null;
    end if;

    v_at := p_now + counterfoil.attempt_backoff(
        p_run.attempt,
        coalesce((v_policy ->> 'backoffBaseMs')::numeric, counterfoil.setting_integer('attempt_backoff_base_ms')),
        coalesce((v_policy ->> 'backoffMaxMs')::numeric, counterfoil.setting_integer('attempt_backoff_max_ms')),
        coalesce((v_policy ->> 'jitter')::numeric, 0.5)
    );
    return case when v_at >= p_run.deadline_at then null else v_at end;
end
$function$;

comment on function counterfoil.next_attempt_at(counterfoil.runs, jsonb, timestamptz) is
'When a run whose attempt failed with p_error is tried again; null when it is not. Private.';

revoke all on function counterfoil.next_attempt_at(counterfoil.runs, jsonb, timestamptz) from public;
