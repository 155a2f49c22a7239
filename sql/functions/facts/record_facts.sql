-- record_facts: appends facts of one run, each once.
--
-- Promises: in the order given, each new fact gets the run's next seq and each exact repeat the seq it has; all or none.
--           A call that waited for the run's lock comes after whoever it waited for. With an attempt and a lease id it
--           writes only while that lease is the run's live one.
-- Locks:    the run, for no key update; then its lanes.
-- Raises:   RL002 run_not_found; RL003 an id that stands for something else; RL004 attempt_lease_not_current;
--           RL005 written_by_the_run, run_not_started, run_ended.
-- Since:    1

create or replace function counterfoil.record_facts(
    p_org_id text,
    p_run_id text,
    p_event_ids text[],
    p_event_types text[],
    p_payloads jsonb[],
    p_attempt integer,
    p_lease_id text,
    p_is_batch boolean
)
returns table (ordinal bigint, recorded boolean, seq bigint)
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
    v_now timestamptz;
    v_run record;
    v_known record;
    v_base bigint;
    v_fresh bigint[];
    v_index bigint;
    v_reason text;
begin
    select r.started_at, r.terminal_event_id, r.attempt
    into v_run
    from counterfoil.runs as r
    where r.org_id = p_org_id and r.run_id = p_run_id
    for no key update;
    if not found then
        perform counterfoil.raise_not_found('There is no such run.', 'run_not_found', 'Check p_org_id and p_run_id.');
    end if;
    v_now := clock_timestamp();

    if p_attempt is not null then
        perform counterfoil.prove_attempt_lease(p_org_id, p_run_id, p_attempt, p_lease_id, v_run.attempt, v_now);
    end if;

    -- The common case: all are new, and may be appended.
    if
        (select count(distinct u.event_id) from unnest(p_event_ids) as u (event_id)) = cardinality(p_event_ids)
        and not exists (
            select
            from unnest(p_event_types) as u (event_type)
            where
                counterfoil.fact_refusal(
                    u.event_type, v_run.started_at is not null, v_run.terminal_event_id is not null
                ) is not null
        )
        and not exists (
            select
            from unnest(p_event_ids) as u (event_id)
            cross join lateral (
                select o.seq
                from counterfoil.outbox as o
                -- Ordered, so that no index without the order will do: one of those reads the whole org.
                where o.org_id = p_org_id and o.event_id between u.event_id and u.event_id
                order by o.event_id
                limit 1
            ) as k
        )
    then
        if cardinality(p_event_ids) > 0 then
            v_base := counterfoil.write_run_facts(p_org_id, p_run_id, p_event_ids, p_event_types, p_payloads, v_now);
        end if;
        return query select i.ordinal, true, v_base + i.ordinal from generate_series(1, cardinality(p_event_ids)::bigint) as i (ordinal);
        return;
    end if;

    -- The first of each id in this call is compared with what is stored, the others with the first.
    select
        array_agg(g.ordinality order by g.ordinality) filter (where g.is_fresh) as fresh,
        array_agg(g.first_ordinality order by g.ordinality) as firsts,
        array_agg(g.seq order by g.ordinality) as seqs,
        min(g.ordinality) filter (where g.differs is not null) as first_bad,
        (array_agg(g.differs order by g.ordinality) filter (where g.differs is not null))[1] as differs
    into v_known
    from (
        select
            f.ordinality,
            f.first_ordinality,
            o.seq,
            f.ordinality = f.first_ordinality and o.seq is null as is_fresh,
            case
                when o.seq is not null and o.run_id <> p_run_id then 'runId'
                when coalesce(o.event_type, f.first_type) <> f.event_type then 'eventType'
                when
                    case
                        when o.payload_digest is not null then o.payload_digest <> counterfoil.canonical_digest(f.payload)
                        else coalesce(o.payload, f.first_payload) <> f.payload
                    end
                    then 'payload'
            end as differs
        from (
            select
                u.event_id,
                u.event_type,
                u.payload,
                u.ordinality,
                first_value(u.ordinality) over w as first_ordinality,
                first_value(u.event_type) over w as first_type,
                first_value(u.payload) over w as first_payload
            from unnest(p_event_ids, p_event_types, p_payloads)
                with ordinality as u (event_id, event_type, payload, ordinality)
            window w as (partition by u.event_id order by u.ordinality)
        ) as f
        left join lateral (
            select k.seq, k.run_id, k.event_type, k.payload, k.payload_digest
            from counterfoil.outbox as k
            where k.org_id = p_org_id and k.event_id between f.event_id and f.event_id
            order by k.event_id
            limit 1
        ) as o on true
    ) as g;

    if v_known.first_bad is not null then
        perform counterfoil.raise_identity_conflict(
            case v_known.differs
                when 'runId' then 'This event id belongs to a fact of another run.'
                when 'payload' then 'This event id belongs to a fact with another payload.'
                else 'This event id belongs to a fact with another event type.'
            end,
            case
                when p_is_batch then format('p_facts[%s].%s', v_known.first_bad - 1, v_known.differs)
                when v_known.differs = 'runId' then 'p_run_id'
                when v_known.differs = 'eventType' then 'p_event_type'
                else 'p_payload'
            end,
            'A fact never changes; give a new fact an id of its own.'
        );
    end if;

    v_fresh := coalesce(v_known.fresh, '{}');
    if cardinality(v_fresh) > 0 then
        select f.index, f.reason
        into v_index, v_reason
        from (
            select
                u.ordinality - 1 as index,
                counterfoil.fact_refusal(
                    u.event_type, v_run.started_at is not null, v_run.terminal_event_id is not null
                ) as reason
            from unnest(p_event_types) with ordinality as u (event_type, ordinality)
            where u.ordinality = any(v_fresh)
        ) as f
        where f.reason is not null
        order by f.index
        limit 1;
        if found then
            perform counterfoil.raise_invalid_state(
                format('%s cannot be appended: %s.', p_event_types[v_index + 1], case v_reason
                    when 'written_by_the_run' then 'the run writes it itself when it starts or ends'
                    when 'run_not_started' then 'the run has not started'
                    else 'the run has ended'
                end),
                v_reason,
                case v_reason
                    when 'written_by_the_run' then 'Launch, claim, complete, fail or cancel the run instead.'
                    when 'run_not_started' then 'Append facts once an attempt has been claimed.'
                    else 'After its end a run takes only runner.logs and step.receipt.'
                end
            );
        end if;

        v_base := counterfoil.write_run_facts(
            p_org_id,
            p_run_id,
            (select array_agg(p_event_ids[i.index] order by i.ordinality) from unnest(v_fresh) with ordinality as i (index, ordinality)),
            (select array_agg(p_event_types[i.index] order by i.ordinality) from unnest(v_fresh) with ordinality as i (index, ordinality)),
            (select array_agg(p_payloads[i.index] order by i.ordinality) from unnest(v_fresh) with ordinality as i (index, ordinality)),
            v_now
        );
    end if;

    -- From what was found above: retention may have removed a repeat's fact meanwhile.
    return query
    select
        u.ordinal, u.seq is null and u.ordinal = u.first_ordinal,
        coalesce(u.seq, v_base + array_position(v_fresh, u.first_ordinal))
    from unnest(v_known.seqs, v_known.firsts) with ordinality as u (seq, first_ordinal, ordinal);
end
$function$;

comment on function counterfoil.record_facts(text, text, text[], text[], jsonb[], integer, text, boolean) is
'Appends checked facts (parallel arrays) of one run under its row lock, each once, and answers which were new and their seq. p_is_batch chooses the path named in DETAIL. Private.';

revoke all on function counterfoil.record_facts(text, text, text[], text[], jsonb[], integer, text, boolean) from public;
