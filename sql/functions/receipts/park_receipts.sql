-- park_receipts: takes running receipts off their holders; the work behind mark_receipts_queued and release_receipts.
--
-- Promises: the receipts become queued and open to everybody. With p_keep_place the holder may go on with them under the
--           same lease id until somebody else claims them; else the lease is over. A repeat answers the same.
-- Locks:    the receipts' rows, in the order of their keys.
-- Raises:   RL001 malformed items; RL002 receipt_not_found; RL004 attempt_lease_not_current or receipt_lease_not_current;
--           RL008 too many items.
-- Since:    1

create or replace function counterfoil.park_receipts(
    p_org_id text,
    p_run_id text,
    p_receipts jsonb,
    p_keep_place boolean
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
    v_standings text[];
    v_now timestamptz;
begin
    perform counterfoil.check_id(p_org_id, 'p_org_id');
    perform counterfoil.check_id(p_run_id, 'p_run_id');
    perform counterfoil.check_receipt_items(p_receipts);
    if p_receipts = '[]'::jsonb then
        return;
    end if;

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

    v_standings := counterfoil.lock_receipts(
        p_org_id, p_run_id, v_keys, v_lease_ids, v_attempts,
        case when p_keep_place then array['held', 'queued'] else array['held', 'queued', 'released'] end
    );

    if v_standings && array['held', 'queued'] then
        perform counterfoil.prove_attempts(p_org_id, p_run_id, v_attempts);
        v_now := clock_timestamp();
        -- Through the key's own index, whatever the planner thinks: an update joined to a list may read the whole org.
        insert into counterfoil.step_receipts as r (org_id, key, status, run_id, created_at, claimed_at, updated_at)
        select distinct p_org_id, g.key, 'queued', p_run_id, v_now, v_now, v_now
        from unnest(v_keys, v_standings) as g (key, standing)
        where g.standing = 'held' or (g.standing = 'queued' and not p_keep_place)
        on conflict on constraint step_receipts_pkey do update
        set
            status = excluded.status,
            lease_id = case when p_keep_place then r.lease_id end,
            settled_lease_id = case when not p_keep_place then r.lease_id end,
            lease_expires_at = null,
            updated_at = excluded.updated_at
        where r.status in ('running', 'queued') and r.run_id = excluded.run_id;
    end if;

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

comment on function counterfoil.park_receipts(text, text, jsonb, boolean) is
'Makes running receipts queued again, with or without their holder''s place; the work behind mark_receipts_queued and release_receipts. Private.';

revoke all on function counterfoil.park_receipts(text, text, jsonb, boolean) from public;
