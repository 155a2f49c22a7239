-- write_facts: writes facts of runs that there are.
--
-- Promises: writes the given facts of one org's runs in the order given, numbers them from each run's latest,
--           and puts each run's lanes up for delivery. The facts must be new: callers look for repeats first.
-- Locks:    the caller holds the lock of every run named (at least for no key update); then their lanes.
-- Raises:   RL003 when another run's fact took an event id since the caller looked.
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
    v_written bigint;
    v_filled text[];
begin
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
            r.last_seq + row_number() over (partition by g.run_id order by g.ordinal) as seq,
            g.event_id,
            g.event_type,
            g.payload,
            counterfoil.fact_lane(g.payload) as lane
        from unnest(p_run_ids, p_event_ids, p_event_types, p_payloads)
            with ordinality as g (run_id, event_id, event_type, payload, ordinal)
        cross join lateral (select counterfoil.latest_seq(p_org_id, g.run_id) as last_seq) as r
    ),

    written as (
        insert into counterfoil.outbox as o (
            org_id, run_id, seq, event_id, event_type, lane, deferred, payload, delivery_key, created_at
        )
        select
            p_org_id, n.run_id, n.seq, n.event_id, n.event_type, n.lane,
            coalesce(n.payload -> 'deferredProjection' = 'true'::jsonb, false), n.payload, gen_random_uuid(), p_now
        from numbered as n
        order by n.ordinal
        -- Of any key: a caller whose snapshot is older than a run's latest fact meets its position here, with 40001.
        on conflict do nothing
        returning o.run_id, o.lane, o.seq, o.event_type, o.payload
    ),

    queued as materialized (
        select
            n.run_id,
            n.lane,
            count(*) as facts,
            min(n.seq) as first_seq,
            max(n.seq) as last_seq,
            max(n.seq) filter (where counterfoil.event_kind(n.event_type) = 'terminal') as terminal_seq,
            max(n.seq) filter (where counterfoil.is_public_wait(n.event_type, n.payload)) as wait_seq
        from written as n
        group by n.run_id, n.lane
        order by n.run_id, n.lane
    )

    select
        (select array_agg(n.ordinal order by n.ordinal) from numbered as n),
        (select array_agg(n.seq order by n.ordinal) from numbered as n),
        sum(w.facts)::bigint,
        array_agg(distinct w.lane) filter (where counterfoil.queue_lane(
            p_org_id, w.run_id, w.lane, w.first_seq, w.last_seq, w.terminal_seq, w.wait_seq, p_now
        ))
    into v_ordinals, v_seqs, v_written, v_filled
    from queued as w;
    if v_written is distinct from cardinality(p_event_ids) then
        perform counterfoil.raise_identity_conflict(
            'One of these event ids was taken meanwhile by a fact of another run.', 'p_run_id',
            'Give a new fact an id of its own.'
        );
    end if;
    perform counterfoil.wake(f.lane) from unnest(v_filled) as f (lane);

    return query select w.ordinal, w.seq from unnest(v_ordinals, v_seqs) as w (ordinal, seq);
end
$function$;

comment on function counterfoil.write_facts(text, text[], text[], text[], jsonb[], timestamptz) is
'Writes facts (parallel arrays, in order) for runs of one org whose row locks the caller holds: outbox rows numbered from each run''s latest fact, the lanes, and a wake-up. Returns each fact''s ordinal (from 1) and seq. Private.';

revoke all on function counterfoil.write_facts(text, text[], text[], text[], jsonb[], timestamptz) from public;
