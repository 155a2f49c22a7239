-- write_run_facts: writes many new facts of one run.
--
-- Promises: the facts get the run's next positions in the order given, and their lanes are up for delivery; answers the
--           position before the first. The facts must be new: the caller looks for repeats.
-- Locks:    the caller holds the run's row (at least for no key update); then its counter, then its lanes, upserted.
-- Raises:   unique_violation when another run's fact took an event id since the caller looked.
-- Since:    1

create or replace function counterfoil.write_run_facts(
    p_org_id text,
    p_run_id text,
    p_event_ids text[],
    p_event_types text[],
    p_payloads jsonb[],
    p_now timestamptz
)
returns bigint
language plpgsql
volatile
parallel unsafe
called on null input
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $function$
declare
    v_base bigint;
begin
    select c.last_seq
    into strict v_base
    from counterfoil.fact_counters as c
    where c.org_id = p_org_id and c.run_id = p_run_id
    -- The run's row, which orders writers, is not written: a caller with an older snapshot fails here, with 40001.
    for no key update;

    insert into counterfoil.outbox (
        org_id, run_id, seq, event_id, event_type, lane, deferred, payload, delivery_key, created_at
    )
    select
        p_org_id, p_run_id, v_base + g.ordinal, g.event_id, g.event_type, counterfoil.fact_lane(g.payload),
        coalesce(g.payload -> 'deferredProjection' = 'true'::jsonb, false), g.payload, gen_random_uuid(), p_now
    from unnest(p_event_ids, p_event_types, p_payloads) with ordinality as g (event_id, event_type, payload, ordinal)
    -- Two calls that bring the same ids for different runs wait for each other in one order.
    order by g.event_id;

    update counterfoil.fact_counters as c
    set last_seq = v_base + cardinality(p_event_ids), facts = c.facts + cardinality(p_event_ids)
    where c.org_id = p_org_id and c.run_id = p_run_id;

    perform counterfoil.queue_facts(
        p_org_id, p_run_id, g.lane, g.first_seq, g.last_seq, g.terminal_seq, g.wait_seq, p_now
    )
    from (
        select
            n.lane,
            min(n.seq) as first_seq,
            max(n.seq) as last_seq,
            max(n.seq) filter (where counterfoil.event_kind(n.event_type) = 'terminal') as terminal_seq,
            max(n.seq) filter (where counterfoil.is_public_wait(n.event_type, n.payload)) as wait_seq
        from (
            select counterfoil.fact_lane(g.payload) as lane, v_base + g.ordinal as seq, g.event_type, g.payload
            from unnest(p_event_types, p_payloads) with ordinality as g (event_type, payload, ordinal)
        ) as n
        group by n.lane
        order by n.lane
    ) as g;
    return v_base;
end
$function$;

comment on function counterfoil.write_run_facts(text, text, text[], text[], jsonb[], timestamptz) is
'Writes new facts (parallel arrays, in order) of one run whose row lock the caller holds, and puts their lanes up for delivery; answers the seq before the first. Private.';

revoke all on function counterfoil.write_run_facts(text, text, text[], text[], jsonb[], timestamptz) from public;
