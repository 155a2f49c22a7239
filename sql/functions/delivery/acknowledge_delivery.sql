-- acknowledge_delivery: marks a delivery, and may claim what comes next.
--
-- Promises: of the given facts those that p_lease_owner holds under a live lease are delivered, which must be the first
--           pending ones and, when the receipt is frozen, all of it; one row says acknowledged or not_owned for each, in
--           the order given. A repeat by the same owner answers as the first did. When all are acknowledged and
--           p_continuation_allowance is over 0, up to so many facts of the successor prefix are claimed for the same owner
--           in the same transaction (rows of kind claimed, as claim_deliveries answers); null means no bound but
--           prefix_max_facts.
-- Locks:    the lane, for no key update.
-- Raises:   RL001 malformed arguments, or facts of two lanes; RL004 delivery_lease_not_current when none is held,
--           receipt_boundary_mismatch when the facts are not the first ones, or a part of a frozen receipt.
-- Since:    1

create or replace function counterfoil.acknowledge_delivery(
    p_org_id text,
    p_run_id text,
    p_event_ids text[],
    p_lease_owner text,
    p_continuation_allowance integer default 0,
    p_lease_seconds integer default 30,
    p_allow_ingress_prefix boolean default false
)
returns table (
    kind text,
    org_id text,
    run_id text,
    lane text,
    seq bigint,
    event_id text,
    event_type text,
    delivery_key uuid,
    deferred boolean,
    payload jsonb,
    events jsonb,
    created_at timestamptz,
    lease_expires_at timestamptz,
    frozen boolean,
    idempotency_key text,
    dispatch_authority jsonb
)
language plpgsql
volatile
parallel unsafe
called on null input
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $function$
declare
    v_lanes text[];
    v_lane record;
    v_is_live boolean;
    v_now timestamptz;
    v_facts record;
    v_named record;
begin
    perform counterfoil.check_id(p_org_id, 'p_org_id');
    perform counterfoil.check_id(p_run_id, 'p_run_id');
    perform counterfoil.check_id(p_lease_owner, 'p_lease_owner');
    perform counterfoil.check_event_ids(p_event_ids);
    if p_continuation_allowance is not null then
        perform counterfoil.check_limit(p_continuation_allowance, 0, 2147483647, 'p_continuation_allowance');
    end if;

    select array_agg(distinct o.lane)
    into v_lanes
    from unnest(p_event_ids) as g (event_id)
    inner join counterfoil.outbox as o on o.org_id = p_org_id and o.event_id = g.event_id and o.run_id = p_run_id;
    if cardinality(v_lanes) > 1 then
        perform counterfoil.raise_invalid_argument(
            'These facts wait in two lanes.', 'p_event_ids', 'Acknowledge the facts of one lane.'
        );
    end if;

    select l.head_seq, l.lease_owner, l.lease_expires_at, l.lease_through_seq, l.receipt_through_seq
    into v_lane
    from counterfoil.lanes as l
    where l.org_id = p_org_id and l.run_id = p_run_id and l.lane = v_lanes[1]
    order by l.head_seq desc
    limit 1
    for no key update;
    v_now := clock_timestamp();
    v_is_live := coalesce(v_lane.lease_owner = p_lease_owner and v_lane.lease_expires_at > v_now, false);

    -- Which of the named facts are under this lease, and which this owner has delivered before.
    select
        array_agg(k.event_id order by k.ordinality) filter (where k.is_held) as held,
        array_agg(k.event_id order by k.ordinality) filter (where k.is_held or k.was_delivered) as acknowledged,
        max(k.seq) filter (where k.is_held) as through_seq
    into v_named
    from (
        select
            g.event_id,
            g.ordinality,
            o.seq,
            coalesce(v_is_live and o.seq between v_lane.head_seq and v_lane.lease_through_seq, false) as is_held,
            coalesce(o.seq < v_lane.head_seq, o.seq is not null) and coalesce((
                select d.last_seq >= o.seq and d.lease_owner = p_lease_owner and d.outcome = 'delivered'
                from counterfoil.deliveries as d
                where d.org_id = p_org_id and d.run_id = p_run_id and d.lane = o.lane and d.first_seq <= o.seq
                order by d.first_seq desc
                limit 1
            ), false) as was_delivered
        from unnest(p_event_ids) with ordinality as g (event_id, ordinality)
        left join counterfoil.outbox as o on o.org_id = p_org_id and o.event_id = g.event_id and o.run_id = p_run_id
    ) as k;

    if v_named.acknowledged is null then
        perform counterfoil.raise_lease_lost(
            'None of these facts is held by this owner under a live lease.', 'delivery_lease_not_current',
            'Drop the delivery; whoever holds the lease acknowledges it.'
        );
    end if;

    if v_named.held is not null then
        select count(*) as facts
        into v_facts
        from counterfoil.outbox as o
        where
            o.org_id = p_org_id and o.run_id = p_run_id and o.lane = v_lanes[1]
            and o.seq between v_lane.head_seq and v_named.through_seq;
        if
            v_facts.facts <> cardinality(v_named.held)
            or coalesce(v_lane.receipt_through_seq, v_named.through_seq) <> v_named.through_seq
        then
            perform counterfoil.raise_lease_lost(
                'These facts are not the whole of what can be acknowledged together.', 'receipt_boundary_mismatch',
                'Acknowledge the first pending facts without a gap, and a frozen receipt as a whole.'
            );
        end if;
        perform counterfoil.advance_lanes(
            array[p_org_id], array[p_run_id], v_lanes[1], array[v_named.through_seq], p_lease_owner, v_now
        );
    elsif v_is_live then
        -- A repeat: what the lost reply had claimed is claimed again below.
        update counterfoil.lanes as l
        set lease_owner = null, lease_expires_at = null, lease_through_seq = null
        where l.org_id = p_org_id and l.run_id = p_run_id and l.lane = v_lanes[1];
    end if;

    return query
    select
        case when g.event_id = any(v_named.acknowledged) then 'acknowledged' else 'not_owned' end,
        p_org_id, p_run_id, v_lanes[1], o.seq, g.event_id, o.event_type, o.delivery_key,
        null::boolean, null::jsonb, null::jsonb, null::timestamptz, null::timestamptz, null::boolean, null::text, null::jsonb
    from unnest(p_event_ids) with ordinality as g (event_id, ordinality)
    left join counterfoil.outbox as o on o.org_id = p_org_id and o.event_id = g.event_id and o.run_id = p_run_id
    order by g.ordinality;

    if cardinality(v_named.acknowledged) = cardinality(p_event_ids) and coalesce(p_continuation_allowance, 1) > 0 then
        return query
        select 'claimed', t.*
        from counterfoil.take_prefixes(
            array[p_org_id], array[p_run_id], v_lanes[1], p_lease_owner,
            v_now + counterfoil.clamp_lease(p_lease_seconds),
            least(p_continuation_allowance, counterfoil.setting_integer('prefix_max_facts'))::integer,
            coalesce(p_allow_ingress_prefix, false), v_now
        ) as t;
    end if;
end
$function$;

comment on function counterfoil.acknowledge_delivery(text, text, text[], text, integer, integer, boolean) is
'Marks the facts that p_lease_owner holds as delivered and, within p_continuation_allowance facts, claims the successor prefix for the same owner. Rows of kind acknowledged or not_owned for the facts given, then of kind claimed.';

revoke all on function counterfoil.acknowledge_delivery(text, text, text[], text, integer, integer, boolean) from public;
