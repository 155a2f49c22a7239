-- check_runner_fence: refuses a runner whose attempt is not its own any more.
--
-- Promises: returns only when the attempt is open under the runner's lease: running with a lease that has not lapsed, or
--           parked behind the runner, which then needs no heartbeats.
-- Locks:    nothing; the caller holds run and attempt.
-- Raises:   RL004 attempt_lease_not_current.
-- Since:    1

create or replace function counterfoil.check_runner_fence(
    p_run counterfoil.runs, p_attempt counterfoil.attempts, p_lease_id text, p_now timestamptz
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
    if p_attempt.status = 'waiting' and p_attempt.lease_id = p_lease_id and p_run.wait_kind = 'detached_runner' then
        return;
    end if;
    perform counterfoil.check_attempt_lease(p_attempt, p_lease_id, p_now);
end
$function$;

comment on function counterfoil.check_runner_fence(counterfoil.runs, counterfoil.attempts, text, timestamptz) is
'Refuses a detached runner whose attempt is neither running under its live lease nor parked behind it (RL004). Private.';

revoke all on function counterfoil.check_runner_fence(counterfoil.runs, counterfoil.attempts, text, timestamptz)
from public;
