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
        array_agg(i.item ->> 'key'),
        array_agg(i.item ->> 'leaseId'),
        array_agg((i.item ->> 'runAttempt')::integer)
    into v_keys, v_lease_ids, v_attempts
    from (
        -- Sorted once for all aggregates.
        select e.item
        from jsonb_array_elements(p_receipts) with ordinality as e (item, ordinality)
        order by e.ordinality
    ) as i;

    v_standings := counterfoil.lock_receipts(p_org_id, p_run_id, v_keys, v_lease_ids, v_attempts, null);
    perform counterfoil.prove_attempts(p_org_id, p_run_id, v_attempts);

    v_now := clock_timestamp();
    -- Through the key's own index, whatever the planner thinks: an update joined to a list may read the whole org.
    insert into counterfoil.step_receipts as r (org_id, key, status, run_id, created_at, claimed_at, updated_at)
    select distinct p_org_id, g.key, 'queued', p_run_id, v_now, v_now, v_now
    from unnest(v_keys, v_standings) as g (key, standing)
    where g.standing = 'held'
    on conflict on constraint step_receipts_pkey do update
    set lease_expires_at = greatest(r.lease_expires_at, v_now + v_lease), updated_at = excluded.updated_at
    where r.status = 'running' and r.run_id = excluded.run_id and r.lease_expires_at > v_now;

    return query
    select
        g.ordinality::integer,
        g.key,
        case when k.key is null then 'lost' else 'ok' end,
        case when k.key is not null then counterfoil.receipt_document(k.receipt, v_now, false, true) end
    from unnest(v_keys, v_standings) with ordinality as g (key, standing, ordinality)
    left join lateral (
        select r.key, r as receipt
        from counterfoil.step_receipts as r
        where r.org_id = p_org_id and r.key = g.key and g.standing = 'held' and r.lease_expires_at > v_now
        limit 1
    ) as k on true
    order by g.ordinality;
end
$function$;

comment on function counterfoil.extend_receipts(text, text, jsonb, integer) is
'Renews the leases of running receipts and says which are lost; the work behind heartbeat_receipts. Private.';

revoke all on function counterfoil.extend_receipts(text, text, jsonb, integer) from public;
