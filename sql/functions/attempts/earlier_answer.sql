-- earlier_answer: what a holder was answered when it sent the same before.
--
-- Promises: the kept answer when the attempt ended under this lease with these very contents; null when it has not been
--           answered, or under another lease, which the caller's fence then refuses.
-- Locks:    nothing; the caller holds the attempt.
-- Raises:   RL003 attempt_answer when it was answered to other contents.
-- Since:    1

create or replace function counterfoil.earlier_answer(p_attempt counterfoil.attempts, p_lease_id text, p_digest bytea)
returns jsonb
language plpgsql
volatile
parallel unsafe
called on null input
security invoker
set search_path = pg_catalog, pg_temp
as $function$
begin
    if p_attempt.answer is null or p_attempt.lease_id <> p_lease_id then
        return null;
    end if;
    if p_attempt.answer_digest <> p_digest then
        perform counterfoil.raise_identity_conflict(
            format('Attempt %s of run %s has ended already, with other contents.', p_attempt.attempt, p_attempt.run_id),
            'attempt_answer', 'Repeat exactly what was sent first, or leave it: the attempt is over.'
        );
    end if;
    return p_attempt.answer;
end
$function$;

comment on function counterfoil.earlier_answer(counterfoil.attempts, text, bytea) is
'Answer kept from an accepted completion or failure of the same contents under the same lease, or null. Private.';

revoke all on function counterfoil.earlier_answer(counterfoil.attempts, text, bytea) from public;
