-- look_up_receipts: reads receipts; the work behind get_receipts.
--
-- Promises: see get_receipts.
-- Locks:    nothing.
-- Raises:   RL001, RL008; see get_receipts.
-- Since:    1

create or replace function counterfoil.look_up_receipts(p_org_id text, p_keys text[])
returns table (ordinal integer, key text, receipt jsonb)
language plpgsql
stable
parallel safe
called on null input
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $function$
declare
    v_now timestamptz := clock_timestamp();
begin
    if cardinality(p_keys) = 1 and counterfoil.is_receipt_key(p_keys[1]) and counterfoil.is_id(p_org_id) then
        -- The most frequent question, without lists.
        return query
        select 1, p_keys[1], (
            select counterfoil.receipt_document(r, v_now, true, false)
            from counterfoil.step_receipts as r
            where r.org_id = p_org_id and r.key = p_keys[1] and coalesce(r.expires_at > v_now, true)
        );
        return;
    end if;

    perform counterfoil.check_id(p_org_id, 'p_org_id');
    perform counterfoil.check_receipt_keys(p_keys, 'p_keys');
    return query
    select g.ordinality::integer, g.key, case
        when k.key is not null then counterfoil.receipt_document(k.receipt, v_now, true, false)
    end
    from unnest(p_keys) with ordinality as g (key, ordinality)
    left join lateral (
        select r.key, r as receipt
        from counterfoil.step_receipts as r
        where r.org_id = p_org_id and r.key = g.key and coalesce(r.expires_at > v_now, true)
        limit 1
    ) as k on true
    order by g.ordinality;
end
$function$;

comment on function counterfoil.look_up_receipts(text, text[]) is
'Reads receipts, one answer per key in the order asked; the work behind get_receipts. Private.';

revoke all on function counterfoil.look_up_receipts(text, text[]) from public;
