-- write_run_facts: writes many new facts of one run.
--
-- Promises: the facts get the run's next positions in the order given, and their lanes are up for delivery; answers the
--           position before the first. The facts must be new: the caller looks for repeats.
-- Locks:    the caller holds the run's row (at least for no key update); then its lanes.
-- Raises:   RL003 when another run's fact took an event id since the caller looked.
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
    v_written bigint;
    v_filled text[];
begin
    v_base := counterfoil.latest_seq(p_org_id, p_run_id);

    with written as (
        insert into counterfoil.outbox as o (
            org_id, run_id, seq, event_id, event_type, lane, deferred, payload, delivery_key, created_at
        )
        select
            p_org_id, p_run_id, v_base + g.ordinal, g.event_id, g.event_type, counterfoil.fact_lane(g.payload),
            coalesce(g.payload -> 'deferredProjection' = 'true'::jsonb, false), g.payload, gen_random_uuid(), p_now
        from unnest(p_event_ids, p_event_types, p_payloads)
            with ordinality as g (event_id, event_type, payload, ordinal)
        -- Two calls that bring the same ids for different runs wait for each other in one order.
        order by g.event_id
        -- Of any key: a caller whose snapshot is older than the run's latest fact meets its position here, with 40001.
        on conflict do nothing
        returning o.lane, o.seq, o.event_type, o.payload
    )

    select
        sum(w.facts)::bigint,
        array_agg(w.lane) filter (where counterfoil.queue_lane(
            p_org_id, p_run_id, w.lane, w.first_seq, w.last_seq, w.terminal_seq, w.wait_seq, p_now
        ))
    into v_written, v_filled
    from (
        select
            n.lane,
            count(*) as facts,
            min(n.seq) as first_seq,
            max(n.seq) as last_seq,
            max(n.seq) filter (where counterfoil.event_kind(n.event_type) = 'terminal') as terminal_seq,
            max(n.seq) filter (where counterfoil.is_public_wait(n.event_type, n.payload)) as wait_seq
        from written as n
        group by n.lane
    ) as w;
    if v_written is distinct from cardinality(p_event_ids) then
        perform counterfoil.raise_identity_conflict(
            'One of these event ids was taken meanwhile by a fact of another run.', 'p_facts',
            'Give a new fact an id of its own; the same call again says which it is.'
        );
    end if;
    if v_filled is not null then
        perform counterfoil.wake(f.lane) from unnest(v_filled) as f (lane);
    end if;
    return v_base;
end
$function$;

comment on function counterfoil.write_run_facts(text, text, text[], text[], jsonb[], timestamptz) is
'Writes new facts (parallel arrays, in order) of one run whose row lock the caller holds, and puts their lanes up for delivery; answers the seq before the first. Private.';

revoke all on function counterfoil.write_run_facts(text, text, text[], text[], jsonb[], timestamptz) from public;
