-- acknowledge_deliveries: marks the deliveries of many lanes.
--
-- Promises: every lane that p_lease_owner holds under a live lease is delivered through its position, all in one
--           transaction, in the work of a few statements. One row each, in the order given: acknowledged is true, also for
--           a repeat, or false when the lease is lost, the position is not the owner's, splits a frozen receipt, or the
--           lane is busy for a moment: acknowledge_delivery() settles which. Never waits.
-- Locks:    the lanes, for no key update, skipping those that others hold.
-- Raises:   RL001 malformed or misaligned arrays.
-- Since:    1

create or replace function counterfoil.acknowledge_deliveries(
    p_org_ids text[],
    p_run_ids text[],
    p_lane text,
    p_through_seqs bigint[],
    p_lease_owner text
)
returns table (org_id text, run_id text, acknowledged boolean)
language plpgsql
volatile
parallel unsafe
called on null input
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_material = off
set jit = off
as $function$
declare
    v_now timestamptz;
    v_held record;
begin
    perform counterfoil.check_id(p_lease_owner, 'p_lease_owner');
    perform counterfoil.check_lane(p_lane);
    perform counterfoil.check_lanes_named(p_org_ids, p_run_ids, p_through_seqs);

    v_now := clock_timestamp();
    select
        array_agg(k.org_id) as org_ids,
        array_agg(k.run_id) as run_ids,
        array_agg(k.through_seq) as through_seqs,
        array_agg(k.ordinality) as ordinals
    into v_held
    from (
        select l.org_id, l.run_id, g.through_seq, g.ordinality
        from unnest(p_org_ids, p_run_ids, p_through_seqs)
            with ordinality as g (org_id, run_id, through_seq, ordinality)
        -- By key, whatever a plan made while the table was small would rather read; from the newest, since before it
        -- may lie what was delivered and is not cleaned away yet.
        cross join lateral (
            select k.org_id, k.run_id
            from counterfoil.lanes as k
            where
                k.org_id = g.org_id and k.run_id = g.run_id and k.lane = p_lane
                and k.lease_owner = p_lease_owner and k.lease_expires_at > v_now
                and g.through_seq between k.head_seq and k.lease_through_seq
                and coalesce(k.receipt_through_seq, g.through_seq) = g.through_seq
            order by k.head_seq desc
            limit 1
            for no key update skip locked
        ) as l
    ) as k;

    if v_held.org_ids is not null then
        perform counterfoil.advance_lanes(
            v_held.org_ids, v_held.run_ids, p_lane, v_held.through_seqs, p_lease_owner, v_now
        );
    end if;

    if cardinality(v_held.ordinals) = cardinality(p_org_ids) then
        return query select g.org_id, g.run_id, true from unnest(p_org_ids, p_run_ids) as g (org_id, run_id);
        return;
    end if;

    return query
    select
        g.org_id,
        g.run_id,
        coalesce(g.ordinality = any(v_held.ordinals), false) or exists (
            select
            from (
                select d.last_seq, d.lease_owner, d.outcome
                from counterfoil.deliveries as d
                where
                    d.org_id = g.org_id and d.run_id = g.run_id and d.lane = p_lane and d.first_seq <= g.through_seq
                order by d.first_seq desc
                limit 1
            ) as d
            where d.last_seq >= g.through_seq and d.lease_owner = p_lease_owner and d.outcome = 'delivered'
        )
    from unnest(p_org_ids, p_run_ids, p_through_seqs)
        with ordinality as g (org_id, run_id, through_seq, ordinality)
    order by g.ordinality;
end
$function$;

comment on function counterfoil.acknowledge_deliveries(text[], text[], text, bigint[], text) is
'Acknowledges many lanes of one kind at once (parallel arrays), each through a position that p_lease_owner holds. One row each, in order: acknowledged, or not because the lease is lost or the lane is busy.';

revoke all on function counterfoil.acknowledge_deliveries(text[], text[], text, bigint[], text) from public;
