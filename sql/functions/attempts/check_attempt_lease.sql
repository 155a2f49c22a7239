-- check_attempt_lease: refuses a holder whose lease is not current.
--
-- Promises: returns only when the attempt runs under exactly this lease and the lease has not lapsed.
-- Locks:    nothing; the caller holds the attempt.
-- Raises:   RL004 attempt_lease_not_current.
-- Since:    1

create or replace function counterfoil.check_attempt_lease(
    p_attempt counterfoil.attempts, p_lease_id text, p_now timestamptz
)
returns void
language plpgsql
volatile
parallel unsafe
called on null input
security invoker
set search_path = pg_catalog, pg_temp
as $function$
begin
    if p_attempt.status = 'running' and p_attempt.lease_id = p_lease_id and p_attempt.lease_expires_at > p_now then
        return;
    end if;
    perform counterfoil.raise_lease_lost(
        format(
            'The lease of attempt %s of run %s is not current (the attempt is %s).',
            p_attempt.attempt, p_attempt.run_id, p_attempt.status
        ),
        'attempt_lease_not_current', 'Stop this attempt and write nothing more for it; claim again.'
    );
end
$function$;

comment on function counterfoil.check_attempt_lease(counterfoil.attempts, text, timestamptz) is
'Refuses a lease that is not the attempt''s live one (RL004 attempt_lease_not_current). Private.';

revoke all on function counterfoil.check_attempt_lease(counterfoil.attempts, text, timestamptz) from public;
