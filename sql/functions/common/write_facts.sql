-- write_facts: the one writer of facts.
--
-- Promises: writes the given facts of one org's runs in the order given, numbers them from each run's counter,
--           and puts each run's lanes up for delivery. The facts must be new: callers look for repeats first.
-- Locks:    the caller holds the lock of every run named (at least for no key update); then lanes, upserted.
-- Raises:   RL003 when another run's fact took an event id since the caller looked (unique_violation among many).
-- Since:    1

create or replace function counterfoil.write_facts(
    p_org_id text,
    p_run_ids text[],
    p_event_ids text[],
    p_event_types text[],
    p_payloads jsonb[],
    p_now timestamptz
)
returns table (ordinal bigint, seq bigint)
language plpgsql
volatile
parallel unsafe
called on null input
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
-- A plan made while runs was small must still look runs up by key when it is not.
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
as $function$
declare
    v_ordinals bigint[];
    v_seqs bigint[];
    v_filled text[];
begin
    -- Launches bring their runs' first facts.
    insert into counterfoil.fact_counters (org_id, run_id, last_seq, facts)
    select p_org_id, g.run_id, 0, 0
    from unnest(p_run_ids, p_event_types) as g (run_id, event_type)
    where g.event_type = 'run.created';

    if cardinality(p_event_ids) = 1 then
        ordinal := 1;
        seq := counterfoil.write_fact(
            p_org_id, p_run_ids[1], p_event_ids[1], p_event_types[1], p_payloads[1], p_now
        );
        if seq is null then
            -- Written since the caller looked, by another run.
            perform counterfoil.raise_identity_conflict(
                'This event id belongs to a fact of another run.', 'p_run_id', 'Give a new fact an id of its own.'
            );
        end if;
        return next;
        return;
    end if;

    with numbered as materialized (
        select
            g.ordinal,
            g.run_id,
            r.row_at,
            r.last_seq + row_number() over (partition by g.run_id order by g.ordinal) as seq,
            g.event_id,
            g.event_type,
            g.payload,
            counterfoil.fact_lane(g.payload) as lane,
            counterfoil.event_kind(g.event_type) = 'terminal' as ends,
            counterfoil.is_public_wait(g.event_type, g.payload) as waits
        from unnest(p_run_ids, p_event_ids, p_event_types, p_payloads)
            with ordinality as g (run_id, event_id, event_type, payload, ordinal)
        -- By key, run by run, whatever the planner makes of the tables' sizes.
        cross join lateral (
            select h.last_seq, h.ctid as row_at
            from counterfoil.fact_counters as h
            where h.org_id = p_org_id and h.run_id = g.run_id
            limit 1
        ) as r
    ),

    written as (
        insert into counterfoil.outbox (
            org_id, run_id, seq, event_id, event_type, lane, deferred, payload, delivery_key, created_at
        )
        select
            p_org_id, n.run_id, n.seq, n.event_id, n.event_type, n.lane,
            coalesce(n.payload -> 'deferredProjection' = 'true'::jsonb, false), n.payload, gen_random_uuid(), p_now
        from numbered as n
        order by n.ordinal
    ),

    counted as (
        update counterfoil.fact_counters as r
        set last_seq = w.last_seq, facts = r.facts + w.facts
        from (
            select n.row_at, max(n.seq) as last_seq, count(*) as facts
            from numbered as n
            group by n.row_at
        ) as w
        -- By place, which the caller's lock keeps: any other condition, on a small table, is answered by reading the org.
        where r.ctid = w.row_at
    ),

    queued as (
        insert into counterfoil.lanes as l (
            org_id, run_id, lane, priority, due_at, head_seq, tail_seq, terminal_seq, wait_seq
        )
        select
            p_org_id, n.run_id, n.lane,
            counterfoil.lane_priority(
                min(n.seq), max(n.seq) filter (where n.ends), max(n.seq) filter (where n.waits)
            ),
            p_now, min(n.seq), max(n.seq), max(n.seq) filter (where n.ends), max(n.seq) filter (where n.waits)
        from numbered as n
        group by n.run_id, n.lane
        order by n.run_id, n.lane
        on conflict on constraint lanes_pkey do update
        set
            tail_seq = excluded.tail_seq,
            terminal_seq = coalesce(excluded.terminal_seq, l.terminal_seq),
            wait_seq = coalesce(excluded.wait_seq, l.wait_seq),
            -- A lane that becomes more urgent goes to the back of its new class:
            -- nothing may appear behind a dispatcher's mark.
            priority = least(l.priority, excluded.priority),
            due_at = case
                when excluded.priority < l.priority then greatest(l.due_at, excluded.due_at) else l.due_at
            end
        -- Only a row that was just inserted has no deleter: the lane was empty before.
        returning l.lane, l.xmax = 0 as filled
    )

    select
        array_agg(n.ordinal order by n.ordinal),
        array_agg(n.seq order by n.ordinal),
        (select array_agg(distinct q.lane) from queued as q where q.filled)
    into v_ordinals, v_seqs, v_filled
    from numbered as n;

    perform counterfoil.wake(f.lane) from unnest(v_filled) as f (lane);

    return query select w.ordinal, w.seq from unnest(v_ordinals, v_seqs) as w (ordinal, seq);
end
$function$;

comment on function counterfoil.write_facts(text, text[], text[], text[], jsonb[], timestamptz) is
'Writes facts (parallel arrays, in order) for runs of one org whose row locks the caller holds: outbox rows numbered from each run''s counter, the counters, the lanes, and a wake-up. Returns each fact''s ordinal (from 1) and seq. Private.';

revoke all on function counterfoil.write_facts(text, text[], text[], text[], jsonb[], timestamptz) from public;
