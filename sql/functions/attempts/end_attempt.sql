-- end_attempt: ends an attempt and keeps what its holder was answered.
--
-- Promises: the attempt is completed, failed, lost or cancelled; its lease is over. A null answer keeps nothing.
-- Locks:    the caller holds the attempt.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.end_attempt(
    p_attempt counterfoil.attempts, p_status text, p_error jsonb, p_crash jsonb, p_answer jsonb, p_digest bytea, p_now timestamptz
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
    update counterfoil.attempts as a
    set
        status = p_status,
        lease_expires_at = null,
        ended_at = p_now,
        error = p_error,
        crash_diagnostic = p_crash,
        answer = p_answer,
        answer_digest = p_digest
    where a.org_id = p_attempt.org_id and a.run_id = p_attempt.run_id and a.attempt = p_attempt.attempt;
end
$function$;

comment on function counterfoil.end_attempt(counterfoil.attempts, text, jsonb, jsonb, jsonb, bytea, timestamptz) is
'Ends an attempt that the caller holds, with its error, crash diagnostic and answer. Private.';

revoke all on function counterfoil.end_attempt(counterfoil.attempts, text, jsonb, jsonb, jsonb, bytea, timestamptz) from public;
