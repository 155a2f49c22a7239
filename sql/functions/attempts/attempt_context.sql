-- attempt_context: what a worker has to know besides the launch.
--
-- Promises: {executorToken, baseUrl, rootRunId, attempt, maxAttempts, claims} and, where there is one: parentRunId,
--           runtimeLogIdentity (origin), deadlineAt, timeoutAt, and runnerTerminal {status, acceptedAt, terminal} that a
--           detached runner recorded for this attempt.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.attempt_context(
    p_launch jsonb,
    p_root_run_id text,
    p_parent_run_id text,
    p_max_attempts integer,
    p_deadline_at timestamptz,
    p_attempt counterfoil.attempts
)
returns jsonb
language sql
stable
parallel safe
called on null input
security invoker
as $function$
    select jsonb_build_object(
        'executorToken', p_launch -> 'executorToken',
        'baseUrl', counterfoil.runtime_base_url(p_launch),
        'rootRunId', p_root_run_id,
        'attempt', (p_attempt).attempt,
        'maxAttempts', p_max_attempts,
        'claims', (p_attempt).claims
    ) || jsonb_strip_nulls(jsonb_build_object(
        'parentRunId', p_parent_run_id,
        'runtimeLogIdentity', case when p_launch ->> 'runtimeLogIdentity' = 'origin' then 'origin' end,
        'deadlineAt', counterfoil.iso_time(p_deadline_at),
        'timeoutAt', counterfoil.iso_time((p_attempt).timeout_at)
    )) || case
        when (p_attempt).runner_terminal is null then '{}'::jsonb
        else jsonb_build_object('runnerTerminal', jsonb_build_object(
            'status', (p_attempt).runner_terminal_status,
            'acceptedAt', counterfoil.iso_time((p_attempt).runner_terminal_at),
            'terminal', (p_attempt).runner_terminal
        ))
    end
$function$;

comment on function counterfoil.attempt_context(jsonb, text, text, integer, timestamptz, counterfoil.attempts) is
'The runner''s context of a claimed attempt. Private.';

revoke all on function counterfoil.attempt_context(jsonb, text, text, integer, timestamptz, counterfoil.attempts) from public;
