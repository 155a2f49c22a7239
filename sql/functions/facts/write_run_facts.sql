-- write_run_facts: writes many new facts of one run.
--
-- Promises: the facts get the run's next positions in the order given, and their lanes are up for delivery; answers the
--           position before the first. The facts must be new: the caller looks for repeats.
-- Locks:    the caller holds the run's row (at least for no key update); then its counter, then its lanes, upserted.
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
    -- The run's row, which orders writers, is not written: a caller with an older snapshot fails here, with 40001.
    update counterfoil.fact_counters as c
    set last_seq = c.last_seq + cardinality(p_event_ids), facts = c.facts + cardinality(p_event_ids)
    where c.org_id = p_org_id and c.run_id = p_run_id
    returning c.last_seq - cardinality(p_event_ids) into strict v_base;

    insert into counterfoil.outbox (
        org_id, run_id, seq, event_id, event_type, lane, deferred, payload, delivery_key, created_at
    )
    select
        p_org_id, p_run_id, v_base + g.ordinal, g.event_id, g.event_type, counterfoil.fact_lane(g.payload),
        coalesce(g.payload -> 'deferredProjection' = 'true'::jsonb, false), g.payload, gen_random_uuid(), p_now
    from unnest(p_event_ids, p_event_types, p_payloads) with ordinality as g (event_id, event_type, payload, ordinal)
    -- Two calls that bring the same ids for different runs wait for each other in one order.
    order by g.event_id
    on conflict on constraint outbox_event_id_key do nothing;
    get diagnostics v_written = row_count;
    if v_written < cardinality(p_event_ids) then
        perform counterfoil.raise_identity_conflict(
            'One of these event ids was taken meanwhile by a fact of another run.', 'p_facts',
            'Give a new fact an id of its own; the same call again says which it is.'
        );
    end if;

    with queued as (
        insert into counterfoil.lanes as l (
            org_id, run_id, lane, priority, due_at, head_seq, tail_seq, terminal_seq, wait_seq
        )
        select
            p_org_id, p_run_id, n.lane, counterfoil.lane_priority(min(n.seq), max(n.terminal_seq), max(n.wait_seq)), p_now,
            min(n.seq), max(n.seq), max(n.terminal_seq), max(n.wait_seq)
        from (
            select
                v_base + g.ordinal as seq,
                counterfoil.fact_lane(g.payload) as lane,
                case when counterfoil.event_kind(g.event_type) = 'terminal' then v_base + g.ordinal end as terminal_seq,
                case when counterfoil.is_public_wait(g.event_type, g.payload) then v_base + g.ordinal end as wait_seq
            from unnest(p_event_types, p_payloads) with ordinality as g (event_type, payload, ordinal)
        ) as n
        group by n.lane
        order by n.lane
        on conflict on constraint lanes_pkey do update
        set
            tail_seq = excluded.tail_seq,
            terminal_seq = coalesce(excluded.terminal_seq, l.terminal_seq),
            wait_seq = coalesce(excluded.wait_seq, l.wait_seq),
            -- A lane that becomes more urgent goes to the back of its new class:
            -- nothing may appear behind a dispatcher's mark.
            priority = least(l.priority, excluded.priority),
            due_at = case when excluded.priority < l.priority then greatest(l.due_at, excluded.due_at) else l.due_at end
        -- Only a row that was just inserted has no deleter: the lane was empty before.
        returning l.lane, l.xmax = 0 as filled
    )

    select array_agg(q.lane)
    into v_filled
    from queued as q
    where q.filled and exists (select from counterfoil.listeners as s where s.queue = q.lane);

    if v_filled is not null then
        perform counterfoil.wake(f.lane) from unnest(v_filled) as f (lane);
    end if;
    return v_base;
end
$function$;

comment on function counterfoil.write_run_facts(text, text, text[], text[], jsonb[], timestamptz) is
'Writes new facts (parallel arrays, in order) of one run whose row lock the caller holds, and puts their lanes up for delivery; answers the seq before the first. Private.';

revoke all on function counterfoil.write_run_facts(text, text, text[], text[], jsonb[], timestamptz) from public;
