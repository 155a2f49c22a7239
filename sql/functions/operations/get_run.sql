-- get_run: one run as the executing side knows it, at once and without waiting for deliveries.
--
-- Promises: the run's document with its result and its attempts: number, status, worker, times, error.
-- Locks:    nothing.
-- Raises:   RL001 malformed ids; RL002 run_not_found.
-- Since:    1

create or replace function counterfoil.get_run(p_org_id text, p_run_id text)
returns jsonb
language plpgsql
stable
parallel safe
called on null input
security definer
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_document jsonb;
begin
    perform counterfoil.check_id(p_org_id, 'p_org_id');
    perform counterfoil.check_id(p_run_id, 'p_run_id');

    select counterfoil.run_document(r) || jsonb_build_object('result', r.result, 'attempts', coalesce((
        select jsonb_agg(jsonb_build_object(
            'attempt', a.attempt,
            'status', a.status,
            'worker', a.worker,
            'claims', a.claims,
            'claimedAt', counterfoil.iso_time(a.claimed_at),
            'heartbeatAt', counterfoil.iso_time(a.heartbeat_at),
            'leaseExpiresAt', counterfoil.iso_time(a.lease_expires_at),
            'endedAt', counterfoil.iso_time(a.ended_at),
            'error', a.error
        ) order by a.attempt)
        from counterfoil.attempts as a
        where a.org_id = p_org_id and a.run_id = p_run_id
    ), '[]'::jsonb))
    into v_document
    from counterfoil.runs as r
    where r.org_id = p_org_id and r.run_id = p_run_id;
    if not found then
        perform counterfoil.raise_not_found('There is no such run in this org.', 'run_not_found', 'Check org and run.');
    end if;

    return v_document;
end
$function$;

comment on function counterfoil.get_run(text, text) is
'A run with its result and its attempts, as one JSON document.';

revoke all on function counterfoil.get_run(text, text) from public;
