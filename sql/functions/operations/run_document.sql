-- run_document: a run as the executing side knows it.
--
-- Promises: one JSON document in camelCase, times in UTC; nothing of the launch but its names.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.run_document(p_run counterfoil.runs)
returns jsonb
language sql
stable
parallel safe
called on null input
security invoker
as $function$
    select jsonb_build_object(
        'orgId', (p_run).org_id,
        'runId', (p_run).run_id,
        'status', (p_run).status,
        'playId', (p_run).play_id,
        'playName', (p_run).play_name,
        'releaseLane', (p_run).release_lane,
        'priority', (p_run).priority,
        'concurrencyKey', (p_run).concurrency_key,
        'rootRunId', (p_run).root_run_id,
        'parentRunId', (p_run).parent_run_id,
        'attempt', (p_run).attempt,
        'maxAttempts', (p_run).max_attempts,
        'createdAt', counterfoil.iso_time((p_run).created_at),
        'availableAt', counterfoil.iso_time((p_run).available_at),
        'startedAt', counterfoil.iso_time((p_run).started_at),
        'endedAt', counterfoil.iso_time((p_run).ended_at),
        'deadlineAt', counterfoil.iso_time((p_run).deadline_at),
        'waitKind', (p_run).wait_kind,
        'waitReason', (p_run).wait_reason,
        'waitEvent', (p_run).wait_event,
        'wakeAt', counterfoil.iso_time((p_run).wake_at),
        'cancelRequestedAt', counterfoil.iso_time((p_run).cancel_requested_at),
        'cancelReason', (p_run).cancel_reason,
        'facts', counterfoil.latest_seq((p_run).org_id, (p_run).run_id),
        'resultSummary', (p_run).result_summary,
        'error', (p_run).error
    )
$function$;

comment on function counterfoil.run_document(counterfoil.runs) is
'A run as a JSON document (camelCase, UTC), without its launch and its result. Private.';

revoke all on function counterfoil.run_document(counterfoil.runs) from public;
