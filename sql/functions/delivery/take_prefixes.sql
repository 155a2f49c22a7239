-- take_prefixes: leases the prefixes of lanes whose rows the caller holds.
--
-- Promises: every given lane that is due, not blocked and under no live lease is leased to p_lease_owner up to the end of
--           its prefix, and the facts of that prefix are answered in order, lane by lane. A frozen receipt is taken whole
--           and alone. Else the prefix ends after p_limit facts, before a fact that failed, before a start or ingress fact
--           that is not the head, after one that is, and after a terminal. With p_allow_ingress_prefix and a pending
--           terminal or public wait, ingress facts combine with the rest; behind an ingress head the carriers that came
--           after the terminal come along.
-- Locks:    the caller holds the lane rows (at least for no key update), so that what is read here stays true; a lane that
--           somebody else has leased in spite of that is passed over.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.take_prefixes(
    p_org_ids text[],
    p_run_ids text[],
    p_lane text,
    p_lease_owner text,
    p_lease_expires_at timestamptz,
    p_limit integer,
    p_allow_ingress_prefix boolean,
    p_now timestamptz
)
returns table (
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
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_material = off
set enable_sort = off
set jit = off
as $function$
declare
    v_max_bytes bigint := counterfoil.setting_integer('prefix_max_bytes');
begin
    return query
    with held as materialized (
        select
            g.ordinality,
            l.row_at,
            l.lease_generation,
            l.org_id,
            l.run_id,
            l.head_seq,
            coalesce(l.receipt_through_seq, l.tail_seq) as end_seq,
            l.receipt_through_seq is not null as is_frozen,
            l.receipt_key,
            l.failures > 0 as has_failures,
            p_allow_ingress_prefix and coalesce(l.terminal_seq, l.wait_seq) is not null as combines
        from unnest(p_org_ids, p_run_ids) with ordinality as g (org_id, run_id, ordinality)
        -- By key, whatever a plan made while the table was small would rather read; from the newest, since before it
        -- may lie what was delivered and is not cleaned away yet.
        cross join lateral (
            select k.*, k.ctid as row_at
            from counterfoil.lanes as k
            where k.org_id = g.org_id and k.run_id = g.run_id and k.lane = p_lane
            order by k.head_seq desc
            limit 1
        ) as l
        where
            l.blocked_at is null and l.due_at <= p_now
            and (l.lease_expires_at is null or l.lease_expires_at <= p_now)
    ),

    -- How far each prefix may reach, from types and positions alone.
    bounded as (
        select
            h.ordinality, h.row_at, h.lease_generation, h.org_id, h.run_id, h.head_seq, h.is_frozen, h.receipt_key,
            case
                -- A frozen receipt goes whole or not at all.
                when h.is_frozen then case when f.failing_seq is null then h.end_seq end
                else least(
                    case when f.alone_seq = f.first_seq then f.first_seq else f.alone_seq - 1 end,
                    f.failing_seq - 1,
                    case when not (h.combines and f.ingress_seq = f.first_seq) then f.terminal_seq end,
                    f.end_seq
                )
            end as end_seq
        from held as h
        cross join lateral (
            select
                min(o.seq) as first_seq,
                max(o.seq) as end_seq,
                min(o.seq) filter (where o.kind = 'start' or (o.kind = 'ingress' and not h.combines)) as alone_seq,
                min(o.seq) filter (where o.kind = 'ingress') as ingress_seq,
                min(o.seq) filter (where o.kind = 'terminal') as terminal_seq,
                min(o.seq) filter (where h.has_failures and exists (
                    select
                    from counterfoil.fact_failures as x
                    where
                        x.org_id = h.org_id and x.run_id = h.run_id and x.seq = o.seq
                        and (x.state <> 'retrying' or x.next_attempt_at > p_now)
                )) as failing_seq
            from (
                select k.seq, counterfoil.event_kind(k.event_type) as kind
                from counterfoil.outbox as k
                where
                    k.org_id = h.org_id and k.run_id = h.run_id and k.lane = p_lane
                    and k.seq between h.head_seq and h.end_seq
                order by k.seq
                limit case when h.is_frozen then null else p_limit end
            ) as o
        ) as f
    ),

    taken as materialized (
        select
            b.ordinality, b.row_at, b.lease_generation, b.org_id, b.run_id, b.is_frozen, k.first_seq, k.through_seq,
            coalesce(b.receipt_key, counterfoil.receipt_key(b.run_id, k.terminal_key, k.all_keys)) as receipt_key
        from bounded as b
        cross join lateral (
            select
                min(o.seq) as first_seq,
                max(o.seq) as through_seq,
                max(o.delivery_key::text) filter (where counterfoil.event_kind(o.event_type) = 'terminal') as terminal_key,
                string_agg(o.delivery_key::text, e'\n') as all_keys
            from (
                select
                    f.seq, f.event_type, f.delivery_key,
                    row_number() over w = 1 or sum(
                        -- Only of what may go; and what is not compressed tells its size without being read.
                        case
                            when b.is_frozen then 0
                            when pg_column_compression(f.payload) is null then pg_column_size(f.payload)
                            else counterfoil.json_bytes(f.payload)
                        end
                    ) over w <= v_max_bytes as fits
                from counterfoil.outbox as f
                where
                    f.org_id = b.org_id and f.run_id = b.run_id and f.lane = p_lane
                    and f.seq between b.head_seq and b.end_seq
                window w as (order by f.seq)
                order by f.seq
            ) as o
            where o.fits
        ) as k
        where k.through_seq is not null
    ),

    leased as (
        update counterfoil.lanes as l
        set
            lease_owner = p_lease_owner,
            lease_expires_at = p_lease_expires_at,
            lease_generation = l.lease_generation + 1,
            lease_through_seq = t.through_seq
        from taken as t
        -- By place, which the caller's lock keeps. Where its lock found no row, since the lane was emptied and begun anew
        -- while it waited, two may come here at once: the generation tells who was first.
        where l.ctid = t.row_at and l.lease_generation = t.lease_generation
        returning t.ordinality, t.org_id, t.run_id, t.is_frozen, t.first_seq, t.through_seq, t.receipt_key
    )

    select
        t.org_id,
        t.run_id,
        p_lane,
        o.seq,
        o.event_id,
        o.event_type,
        o.delivery_key,
        o.deferred,
        o.payload,
        case when not o.deferred then counterfoil.project_events(
            o.event_type, o.event_id, t.run_id, o.seq, o.created_at, o.payload
        ) end,
        o.created_at,
        p_lease_expires_at,
        t.is_frozen,
        t.receipt_key,
        case when o.seq = t.first_seq and p_lane = 'lifecycle' then (
            select a.dispatch_authority
            from counterfoil.launches as a
            where a.org_id = t.org_id and a.run_id = t.run_id
        ) end
    from leased as t
    cross join lateral (
        select f.seq, f.event_id, f.event_type, f.delivery_key, f.deferred, f.payload, f.created_at
        from counterfoil.outbox as f
        where
            f.org_id = t.org_id and f.run_id = t.run_id and f.lane = p_lane
            and f.seq between t.first_seq and t.through_seq
        order by f.seq
    ) as o
    order by t.ordinality, o.seq;
end
$function$;

comment on function counterfoil.take_prefixes(text[], text[], text, text, timestamptz, integer, boolean, timestamptz) is
'Leases the prefixes of the lanes given (parallel arrays), whose rows the caller has locked, and answers their facts in order with their ledger events. Lanes that are not ready are passed over. Private.';

revoke all on function counterfoil.take_prefixes(text[], text[], text, text, timestamptz, integer, boolean, timestamptz) from public;
