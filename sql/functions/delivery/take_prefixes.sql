-- take_prefixes: leases the prefixes of lanes whose rows the caller holds.
--
-- Promises: every given lane that is due, not blocked and under no live lease is leased to p_lease_owner up to the end of
--           its prefix, and the facts of that prefix are answered in order, lane by lane. A frozen receipt is taken whole
--           and alone. Else the prefix ends after p_limit facts, before a fact that failed, before a start or ingress fact
--           that is not the head, after one that is, and after a terminal. With p_allow_ingress_prefix and a pending
--           terminal or public wait, ingress facts combine with the rest; behind an ingress head the carriers that came
--           after the terminal come along.
-- Locks:    the caller holds the lane rows (at least for no key update), so that what is read here stays true.
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
as $function$
begin
    return query
    with held as materialized (
        select
            g.ordinality,
            l.org_id,
            l.run_id,
            l.head_seq,
            coalesce(l.receipt_through_seq, l.tail_seq) as end_seq,
            l.receipt_through_seq is not null as is_frozen,
            l.receipt_key,
            l.failures > 0 as has_failures,
            p_allow_ingress_prefix and coalesce(l.terminal_seq, l.wait_seq) is not null as combines
        from unnest(p_org_ids, p_run_ids) with ordinality as g (org_id, run_id, ordinality)
        inner join counterfoil.lanes as l on l.org_id = g.org_id and l.run_id = g.run_id and l.lane = p_lane
        where
            l.blocked_at is null and l.due_at <= p_now
            and (l.lease_expires_at is null or l.lease_expires_at <= p_now)
    ),

    taken as materialized (
        select h.ordinality, h.org_id, h.run_id, h.is_frozen, f.*
        from held as h
        cross join lateral (
            select
                s.seq,
                s.event_id,
                s.event_type,
                s.delivery_key,
                s.deferred,
                s.payload,
                s.created_at,
                s.n,
                max(s.seq) over () as through_seq,
                coalesce(h.receipt_key, first_value(case when s.n = 1 then counterfoil.receipt_key(
                    h.run_id, s.terminal_key, s.all_keys
                ) end) over (order by s.n)) as receipt_key
            from (
                select
                    e.*,
                    max(e.delivery_key::text) filter (where e.kind = 'terminal') over () as terminal_key,
                    string_agg(e.delivery_key::text, e'\n') over (
                        order by e.n rows between unbounded preceding and unbounded following
                    ) as all_keys
                from (
                    select
                        m.*,
                        min(m.n) filter (where m.stops_before) over () as stop_before,
                        min(m.n) filter (where m.stops_after) over () as stop_after
                    from (
                        select
                            k.*,
                            (h.has_failures and exists (
                                select
                                from counterfoil.fact_failures as x
                                where
                                    x.org_id = h.org_id and x.run_id = h.run_id and x.seq = k.seq
                                    and (x.state <> 'retrying' or x.next_attempt_at > p_now)
                            ))
                            or (not h.is_frozen and k.n > 1 and k.stands_alone) as stops_before,
                            not h.is_frozen and (
                                (k.n = 1 and k.stands_alone)
                                or (k.kind = 'terminal' and not (h.combines and k.head_type = 'run.events'))
                            ) as stops_after
                        from (
                            select
                                o.*,
                                counterfoil.event_kind(o.event_type) as kind,
                                counterfoil.event_kind(o.event_type) = 'start'
                                or (counterfoil.event_kind(o.event_type) = 'ingress' and not h.combines) as stands_alone,
                                row_number() over (order by o.seq) as n,
                                first_value(o.event_type) over (order by o.seq) as head_type
                            from (
                                select
                                    b.seq, b.event_id, b.event_type, b.delivery_key, b.deferred, b.payload, b.created_at
                                from counterfoil.outbox as b
                                where
                                    b.org_id = h.org_id and b.run_id = h.run_id and b.lane = p_lane
                                    and b.seq between h.head_seq and h.end_seq
                                order by b.seq
                                limit case when h.is_frozen then null else p_limit end
                            ) as o
                        ) as k
                    ) as m
                ) as e
                where
                    -- A frozen receipt goes whole or not at all.
                    case
                        when h.is_frozen then e.stop_before is null
                        else e.n < coalesce(e.stop_before, e.n + 1) and e.n <= coalesce(e.stop_after, e.n)
                    end
            ) as s
        ) as f
    ),

    leased as (
        update counterfoil.lanes as l
        set
            lease_owner = p_lease_owner,
            lease_expires_at = p_lease_expires_at,
            lease_generation = l.lease_generation + 1,
            lease_through_seq = t.through_seq
        from taken as t
        where t.n = 1 and l.org_id = t.org_id and l.run_id = t.run_id and l.lane = p_lane
    )

    select
        t.org_id,
        t.run_id,
        p_lane,
        t.seq,
        t.event_id,
        t.event_type,
        t.delivery_key,
        t.deferred,
        t.payload,
        case when not t.deferred then counterfoil.project_events(
            t.event_type, t.event_id, t.run_id, t.seq, t.created_at, t.payload
        ) end,
        t.created_at,
        p_lease_expires_at,
        t.is_frozen,
        t.receipt_key,
        case when t.n = 1 and p_lane = 'lifecycle' then (
            select a.dispatch_authority
            from counterfoil.launches as a
            where a.org_id = t.org_id and a.run_id = t.run_id
        ) end
    from taken as t
    order by t.ordinality, t.n;
end
$function$;

comment on function counterfoil.take_prefixes(text[], text[], text, text, timestamptz, integer, boolean, timestamptz) is
'Leases the prefixes of the lanes given (parallel arrays), whose rows the caller has locked, and answers their facts in order with their ledger events. Lanes that are not ready are passed over. Private.';

revoke all on function counterfoil.take_prefixes(text[], text[], text, text, timestamptz, integer, boolean, timestamptz) from public;
