-- extend_receipts: renews leases of running receipts; the work behind heartbeat_receipts.
--
-- Promises: see heartbeat_receipts.
-- Locks:    the receipts' rows, in the order of their keys.
-- Raises:   RL001, RL004 attempt_lease_not_current, RL008; see heartbeat_receipts.
-- Since:    1

create or replace function counterfoil.extend_receipts(
    p_org_id text,
    p_run_id text,
    p_receipts jsonb,
    p_lease_seconds integer
)
returns table (ordinal integer, key text, outcome text, receipt jsonb)
language plpgsql
volatile
parallel unsafe
called on null input
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
set enable_hashjoin = off
set enable_mergejoin = off
as $function$
declare
    v_keys text[];
    v_lease_ids text[];
    v_attempts integer[];
    v_standings text[];
    v_lease interval;
    v_now timestamptz;
begin
    perform counterfoil.check_id(p_org_id, 'p_org_id');
    perform counterfoil.check_id(p_run_id, 'p_run_id');
    perform counterfoil.check_receipt_items(p_receipts);
    if p_receipts = '[]'::jsonb then
        return;
    end if;
    v_lease := counterfoil.clamp_lease(
        coalesce(p_lease_seconds, counterfoil.setting_integer('receipt_lease_seconds')::integer)
    );

    select
        array_agg(i.item ->> 'key' order by i.ordinality),
        array_agg(i.item ->> 'leaseId' order by i.ordinality),
        array_agg((i.item ->> 'runAttempt')::integer order by i.ordinality)
    into v_keys, v_lease_ids, v_attempts
    from jsonb_array_elements(p_receipts) with ordinality as i (item, ordinality);

    v_standings := counterfoil.lock_receipts(p_org_id, p_run_id, v_keys, v_lease_ids, v_attempts, null);
    perform counterfoil.prove_attempts(p_org_id, p_run_id, v_attempts);

    v_now := clock_timestamp();
    update counterfoil.step_receipts as r
    set lease_expires_at = greatest(r.lease_expires_at, v_now + v_lease), updated_at = v_now
    from (
        select distinct g.key
        from unnest(v_keys, v_standings) as g (key, standing)
        where g.standing = 'held'
    ) as w
    where
        r.org_id = p_org_id and r.key = w.key
        and r.status = 'running' and r.run_id = p_run_id and r.lease_expires_at > v_now;

    return query
    select
        g.ordinality::integer,
        g.key,
        case when r.key is null then 'lost' else 'ok' end,
        case when r.key is not null then counterfoil.receipt_document(r, v_now, false, true) end
    from unnest(v_keys, v_standings) with ordinality as g (key, standing, ordinality)
    left join counterfoil.step_receipts as r
        on r.org_id = p_org_id and r.key = g.key and g.standing = 'held' and r.lease_expires_at > v_now
    order by g.ordinality;
end
$function$;

comment on function counterfoil.extend_receipts(text, text, jsonb, integer) is
'Renews the leases of running receipts and says which are lost; the work behind heartbeat_receipts. Private.';

revoke all on function counterfoil.extend_receipts(text, text, jsonb, integer) from public;
