-- renew_deliveries: extends, and freezes, the deliveries of many lanes.
--
-- Promises: for every lane that p_lease_owner holds under a live lease through exactly its position, what renew_delivery
--           does, all in one transaction, in the work of a few statements. One row each, in the order given; renewed is
--           false, and nothing changes, when the lease is lost, the position is not the end of what is leased, a fact to
--           be frozen has not been materialised, or the lane is busy for a moment: renew_delivery() settles which. Never waits.
-- Locks:    the lanes, for no key update, skipping those that others hold.
-- Raises:   RL001 malformed or misaligned arrays.
-- Since:    1

create or replace function counterfoil.renew_deliveries(
    p_org_ids text[],
    p_run_ids text[],
    p_lane text,
    p_through_seqs bigint[],
    p_lease_owner text,
    p_lease_seconds integer default 30,
    p_freeze boolean default false
)
returns table (org_id text, run_id text, renewed boolean, idempotency_key text, frozen_at timestamptz)
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
    v_piece_max_events integer;
    v_piece_max_bytes integer;
begin
    perform counterfoil.check_id(p_lease_owner, 'p_lease_owner');
    perform counterfoil.check_lane(p_lane);
    perform counterfoil.check_lanes_named(p_org_ids, p_run_ids, p_through_seqs);

    v_now := clock_timestamp();
    select
        array_agg(k.org_id) as org_ids,
        array_agg(k.run_id) as run_ids,
        array_agg(k.ordinality) as ordinals
    into v_held
    from (
        select l.org_id, l.run_id, g.ordinality
        from unnest(p_org_ids, p_run_ids, p_through_seqs)
            with ordinality as g (org_id, run_id, through_seq, ordinality)
        -- By key, whatever a plan made while the table was small would rather read; from the newest, since before it
        -- may lie what was delivered and is not cleaned away yet.
        cross join lateral (
            select k.org_id, k.run_id
            from counterfoil.lanes as k
            where
                k.org_id = g.org_id and k.run_id = g.run_id and k.lane = p_lane
                and k.lease_owner = p_lease_owner and k.lease_expires_at > v_now and k.lease_through_seq = g.through_seq
            order by k.head_seq desc
            limit 1
            for no key update skip locked
        ) as l
    ) as k;

    v_piece_max_events := counterfoil.setting_integer('delivery_piece_max_events')::integer;
    v_piece_max_bytes := counterfoil.setting_integer('delivery_piece_max_bytes')::integer;

    return query
    with held as materialized (
        select h.ordinality, l.row_at, coalesce(l.receipt_key, f.receipt_key) as receipt_key
        from unnest(v_held.org_ids, v_held.run_ids, v_held.ordinals) as h (org_id, run_id, ordinality)
        cross join lateral (
            select k.*, k.ctid as row_at
            from counterfoil.lanes as k
            where k.org_id = h.org_id and k.run_id = h.run_id and k.lane = p_lane
            order by k.head_seq desc
            limit 1
        ) as l
        cross join lateral (
            select
                counterfoil.receipt_key(
                    l.run_id,
                    max(o.delivery_key::text) filter (where counterfoil.event_kind(o.event_type) = 'terminal'),
                    string_agg(o.delivery_key::text, e'\n' order by o.seq)
                ) as receipt_key,
                bool_or(o.deferred) as has_deferred
            from counterfoil.outbox as o
            where
                o.org_id = l.org_id and o.run_id = l.run_id and o.lane = p_lane
                and o.seq between l.head_seq and l.lease_through_seq
        ) as f
        where not (p_freeze and f.has_deferred)
    ),

    renewed as (
        update counterfoil.lanes as l
        set
            lease_expires_at = v_now + counterfoil.clamp_lease(p_lease_seconds),
            receipt_key = case when p_freeze then h.receipt_key else l.receipt_key end,
            receipt_through_seq = case when p_freeze then l.lease_through_seq else l.receipt_through_seq end,
            receipt_frozen_at = case when p_freeze then coalesce(l.receipt_frozen_at, v_now) else l.receipt_frozen_at end,
            receipt_piece_max_events = case
                when p_freeze then coalesce(l.receipt_piece_max_events, v_piece_max_events) else l.receipt_piece_max_events
            end,
            receipt_piece_max_bytes = case
                when p_freeze then coalesce(l.receipt_piece_max_bytes, v_piece_max_bytes) else l.receipt_piece_max_bytes
            end
        from held as h
        -- By place, which the lock keeps.
        where l.ctid = h.row_at
        returning h.ordinality, h.receipt_key, l.receipt_frozen_at
    )

    select g.org_id, g.run_id, r.ordinality is not null, r.receipt_key, r.receipt_frozen_at
    from unnest(p_org_ids, p_run_ids) with ordinality as g (org_id, run_id, ordinality)
    left join renewed as r on r.ordinality = g.ordinality
    order by g.ordinality;
end
$function$;

comment on function counterfoil.renew_deliveries(text[], text[], text, bigint[], text, integer, boolean) is
'Extends, and with p_freeze freezes, many deliveries at once (parallel arrays), each named by its lane and last leased fact. One row each, in order: renewed with its idempotency key, or not because the lease is lost or the lane is busy.';

revoke all on function counterfoil.renew_deliveries(text[], text[], text, bigint[], text, integer, boolean) from public;
