-- resume_receipts: takes queued receipts up again; the work behind mark_receipts_running.
--
-- Promises: see mark_receipts_running.
-- Locks:    the receipts' rows, in the order of their keys.
-- Raises:   RL001, RL002, RL004, RL008; see mark_receipts_running.
-- Since:    1

create or replace function counterfoil.resume_receipts(
    p_org_id text,
    p_run_id text,
    p_receipts jsonb,
    p_lease_seconds integer
)
returns table (ordinal integer, key text, receipt jsonb)
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

    perform counterfoil.lock_receipts(
        p_org_id, p_run_id, v_keys, v_lease_ids, v_attempts, array['held', 'queued']
    );
    perform counterfoil.prove_attempts(p_org_id, p_run_id, v_attempts);

    v_now := clock_timestamp();
    -- Through the key's own index, whatever the planner thinks: an update joined to a list may read the whole org.
    insert into counterfoil.step_receipts as r (org_id, key, status, run_id, created_at, claimed_at, updated_at)
    select distinct p_org_id, g.key, 'queued', p_run_id, v_now, v_now, v_now
    from unnest(v_keys) as g (key)
    on conflict on constraint step_receipts_pkey do update
    set
        status = 'running',
        lease_expires_at = greatest(r.lease_expires_at, v_now + v_lease),
        updated_at = excluded.updated_at
    where r.status in ('running', 'queued') and r.run_id = excluded.run_id and r.lease_id is not null;

    return query
    select g.ordinality::integer, g.key, counterfoil.receipt_document(k.receipt, v_now, false, true)
    from unnest(v_keys) with ordinality as g (key, ordinality)
    cross join lateral (
        select r as receipt
        from counterfoil.step_receipts as r
        where r.org_id = p_org_id and r.key = g.key
        limit 1
    ) as k
    order by g.ordinality;
end
$function$;

comment on function counterfoil.resume_receipts(text, text, jsonb, integer) is
'Takes queued receipts up again under their lease ids; the work behind mark_receipts_running. Private.';

revoke all on function counterfoil.resume_receipts(text, text, jsonb, integer) from public;
