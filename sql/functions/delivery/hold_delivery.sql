-- hold_delivery: proves that a dispatcher holds exactly these facts, and keeps it so until the transaction ends.
--
-- Promises: returns only when p_lease_owner has a live lease over a lane of the run, and the facts under it are exactly
--           the given ones. Answers the lane, its last leased fact, the idempotency key, and what was frozen.
-- Locks:    the lane, for no key update.
-- Raises:   RL001 malformed arguments; RL004 delivery_lease_not_current.
-- Since:    1

create or replace function counterfoil.hold_delivery(
    p_org_id text,
    p_run_id text,
    p_event_ids text[],
    p_lease_owner text,
    out lane text,
    out through_seq bigint,
    out receipt_key text,
    out frozen_at timestamptz,
    out piece_max_events integer,
    out piece_max_bytes integer,
    out has_deferred boolean,
    out held_at timestamptz
)
returns record
language plpgsql
volatile
parallel unsafe
called on null input
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $function$
declare
    v_lane record;
    v_facts record;
begin
    perform counterfoil.check_id(p_org_id, 'p_org_id');
    perform counterfoil.check_id(p_run_id, 'p_run_id');
    perform counterfoil.check_id(p_lease_owner, 'p_lease_owner');
    perform counterfoil.check_event_ids(p_event_ids);

    -- Any of the facts tells the lane; the count below proves the rest.
    select o.lane
    into lane
    from counterfoil.outbox as o
    where o.org_id = p_org_id and o.event_id = p_event_ids[1] and o.run_id = p_run_id;

    select
        l.head_seq, l.lease_owner, l.lease_expires_at, l.lease_through_seq,
        l.receipt_key, l.receipt_frozen_at, l.receipt_piece_max_events, l.receipt_piece_max_bytes
    into v_lane
    from counterfoil.lanes as l
    where l.org_id = p_org_id and l.run_id = p_run_id and l.lane = hold_delivery.lane
    order by l.head_seq desc
    limit 1
    for no key update;
    held_at := clock_timestamp();

    if v_lane.lease_owner = p_lease_owner and v_lane.lease_expires_at > held_at then
        select
            count(*) as facts,
            count(*) filter (where o.event_id = any(p_event_ids)) as named,
            coalesce(bool_or(o.deferred), false) as has_deferred,
            max(o.delivery_key::text) filter (where counterfoil.event_kind(o.event_type) = 'terminal') as terminal_key,
            string_agg(o.delivery_key::text, e'\n' order by o.seq) as all_keys
        into v_facts
        from counterfoil.outbox as o
        where
            o.org_id = p_org_id and o.run_id = p_run_id and o.lane = hold_delivery.lane
            and o.seq between v_lane.head_seq and v_lane.lease_through_seq;
        if v_facts.facts = cardinality(p_event_ids) and v_facts.named = v_facts.facts then
            through_seq := v_lane.lease_through_seq;
            receipt_key := coalesce(
                v_lane.receipt_key, counterfoil.receipt_key(p_run_id, v_facts.terminal_key, v_facts.all_keys)
            );
            frozen_at := v_lane.receipt_frozen_at;
            piece_max_events := v_lane.receipt_piece_max_events;
            piece_max_bytes := v_lane.receipt_piece_max_bytes;
            has_deferred := v_facts.has_deferred;
            return;
        end if;
    end if;

    perform counterfoil.raise_lease_lost(
        'These facts are not exactly what this owner holds under a live lease.', 'delivery_lease_not_current',
        'Drop the delivery; claim again.'
    );
end
$function$;

comment on function counterfoil.hold_delivery(text, text, text[], text) is
'Locks the lane of the facts and proves that p_lease_owner holds exactly them under a live lease (else RL004). Private.';

revoke all on function counterfoil.hold_delivery(text, text, text[], text) from public;
