-- widen_delivery: grows a claimed single ingress fact to the combined prefix.
--
-- Promises: for a receiver that takes combined prefixes: while p_lease_owner holds exactly one ingress fact at the head of
--           the run's lifecycle lane, not frozen, and the run has a pending terminal or public wait, the lease is extended
--           to the combined prefix of up to p_limit facts and all of it is answered. Empty when there is nothing to add, or
--           when someone is writing to the run just now: the single head stays valid.
-- Locks:    the run, then the lane, for no key update, skipping both when others hold them.
-- Raises:   RL001 malformed arguments; RL002 fact_not_found; RL004 head_lease_owner_mismatch,
--           delivery_lease_not_current.
-- Since:    1

create or replace function counterfoil.widen_delivery(
    p_org_id text,
    p_run_id text,
    p_head_event_id text,
    p_lease_owner text,
    p_lease_seconds integer default 30,
    p_limit integer default 64
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
security definer
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_now timestamptz;
    v_head record;
    v_lane record;
begin
    perform counterfoil.check_limit(p_limit, 1, 2147483647, 'p_limit');
    perform counterfoil.prove_dispatch_lease(p_org_id, p_run_id, p_head_event_id, p_lease_owner);

    perform
    from counterfoil.runs as r
    where r.org_id = p_org_id and r.run_id = p_run_id
    for no key update skip locked;
    if not found then
        return;
    end if;

    select o.seq, o.event_type
    into v_head
    from counterfoil.outbox as o
    where o.org_id = p_org_id and o.event_id = p_head_event_id and o.run_id = p_run_id and o.lane = 'lifecycle';

    select l.head_seq, l.due_at, l.receipt_key, coalesce(l.terminal_seq, l.wait_seq) as urgent_seq
    into v_lane
    from counterfoil.lanes as l
    where
        l.org_id = p_org_id and l.run_id = p_run_id and l.lane = 'lifecycle'
        and l.lease_owner = p_lease_owner and l.lease_expires_at > clock_timestamp()
    order by l.head_seq desc
    limit 1
    for no key update skip locked;
    -- What is held was due, even by a clock that was set back meanwhile: the lease must not fall between.
    v_now := greatest(clock_timestamp(), v_lane.due_at);

    if
        v_lane.head_seq is null or v_lane.receipt_key is not null or v_lane.urgent_seq is null
        or v_head.event_type is distinct from 'run.events'
        or p_limit = 1
        -- The fact named must be the head. A lease that reaches further already is a repeat, and answered again.
        or exists (
            select
            from counterfoil.outbox as o
            where
                o.org_id = p_org_id and o.run_id = p_run_id and o.lane = 'lifecycle'
                and o.seq >= v_lane.head_seq and o.seq < v_head.seq
        )
    then
        return;
    end if;

    -- The lease is laid down and taken up again over more, in one transaction.
    update counterfoil.lanes as l
    set lease_owner = null, lease_expires_at = null, lease_through_seq = null
    where l.org_id = p_org_id and l.run_id = p_run_id and l.lane = 'lifecycle';

    return query
    select t.*
    from counterfoil.take_prefixes(
        array[p_org_id], array[p_run_id], 'lifecycle', p_lease_owner,
        v_now + counterfoil.clamp_lease(p_lease_seconds),
        least(p_limit, counterfoil.setting_integer('prefix_max_facts'))::integer, true, v_now
    ) as t;
end
$function$;

comment on function counterfoil.widen_delivery(text, text, text, text, integer, integer) is
'Extends the lease of p_lease_owner over a single ingress head to the combined prefix, for a receiver that advertised prefix batching, and answers all its facts as claim_deliveries does; empty when it cannot now, and the head stays leased.';

revoke all on function counterfoil.widen_delivery(text, text, text, text, integer, integer) from public;
