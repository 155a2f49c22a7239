-- run_snapshot: what a run's ledger adds up to.
--
-- Promises: one document: orgId, runId, status, playId, playName, lastPosition, createdAt, startedAt, endedAt, updatedAt
--           (UTC, ISO 8601), progress, waiting, resultSummary, error, launch without input and credentials.
-- Locks:    nothing.
-- Raises:   RL001 malformed arguments; RL002 run_not_found while the ledger has nothing of the run.
-- Since:    1

create or replace function counterfoil.run_snapshot(p_org_id text, p_run_id text)
returns jsonb
language plpgsql
stable
parallel safe
called on null input
security definer
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_snapshot jsonb;
begin
    perform counterfoil.check_id(p_org_id, 'p_org_id');
    perform counterfoil.check_id(p_run_id, 'p_run_id');

    select jsonb_build_object(
        'orgId', l.org_id,
        'runId', l.run_id,
        'status', l.status,
        'playId', l.play_id,
        'playName', l.play_name,
        'lastPosition', l.last_position,
        'createdAt', counterfoil.iso_time(l.created_at),
        'startedAt', counterfoil.iso_time(l.started_at),
        'endedAt', counterfoil.iso_time(l.ended_at),
        'updatedAt', counterfoil.iso_time(l.updated_at),
        'progress', l.progress,
        'waiting', l.waiting,
        'resultSummary', l.result_summary,
        'error', l.error,
        'launch', l.launch - 'input'
    )
    into v_snapshot
    from counterfoil.ledgers as l
    where l.org_id = p_org_id and l.run_id = p_run_id;
    if not found then
        perform counterfoil.raise_not_found(
            'The ledger has nothing of this run.', 'run_not_found',
            'Check org and run; a run that was just admitted appears with its first delivery.'
        );
    end if;

    return v_snapshot;
end
$function$;

comment on function counterfoil.run_snapshot(text, text) is
'Snapshot of a run according to its ledger, as one JSON document (camelCase; times in UTC, ISO 8601).';

revoke all on function counterfoil.run_snapshot(text, text) from public;
