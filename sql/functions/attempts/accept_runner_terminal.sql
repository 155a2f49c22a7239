-- accept_runner_terminal: keeps the terminal that a detached runner recorded itself.
--
-- Promises: the attempt holds the terminal as of p_accepted_at. An authoritative one (completed, failed) stays; a resumable
--           suspended one may be superseded. False when the very same was there already.
-- Locks:    the caller holds run and attempt.
-- Raises:   RL003 runner_terminal when an authoritative one with other contents is there.
-- Since:    1

create or replace function counterfoil.accept_runner_terminal(
    p_attempt counterfoil.attempts, p_terminal jsonb, p_accepted_at timestamptz
)
returns boolean
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
    if p_attempt.runner_terminal = p_terminal then
        return false;
    elsif p_attempt.runner_terminal_status in ('completed', 'failed') then
        perform counterfoil.raise_identity_conflict(
            format(
                'The runner of attempt %s of run %s has recorded another terminal.', p_attempt.attempt, p_attempt.run_id
            ),
            'runner_terminal', 'A runner ends once: repeat the first terminal unchanged.'
        );
    end if;
    update counterfoil.attempts as a
    set
        runner_terminal = p_terminal,
        runner_terminal_status = p_terminal ->> 'status',
        runner_terminal_at = p_accepted_at
    where a.org_id = p_attempt.org_id and a.run_id = p_attempt.run_id and a.attempt = p_attempt.attempt;
    return true;
end
$function$;

comment on function counterfoil.accept_runner_terminal(counterfoil.attempts, jsonb, timestamptz) is
'Keeps a detached runner''s terminal on its attempt; false for a repeat, RL003 for another one. Private.';

revoke all on function counterfoil.accept_runner_terminal(counterfoil.attempts, jsonb, timestamptz) from public;
