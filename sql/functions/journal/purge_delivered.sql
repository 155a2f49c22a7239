-- purge_delivered: takes delivered facts out, their log text first.
--
-- Promises: at most p_limit deliveries past log_retention lose their facts' log text, and at most p_limit past
--           outbox_retention go with their facts; by an org's own retention where it has one, each org its share.
--           Counts from the acknowledgement, never from a clock at commit. A pending or blocked fact has no delivery
--           and is never touched. Several at once share the work.
-- Locks:    the deliveries it takes, skipping those of others; then their facts; the rows of its turns, if free; the
--           marks of runs whose latest fact goes.
-- Raises:   RL001; RL005 retention_index_not_ready while the journal that keeps the lines cannot be pruned itself.
-- Since:    1

create or replace function counterfoil.purge_delivered(p_limit integer)
returns table (logs_purged bigint, facts_removed bigint, more boolean)
language plpgsql
volatile
parallel unsafe
called on null input
security definer
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
    v_now timestamptz := clock_timestamp();
    v_logs record;
    v_facts record;
    v_due record;
    v_stripped bigint;
    v_most_stripped bigint;
    v_removed bigint;
    v_most_forgotten bigint;
    v_more boolean;
begin
    perform counterfoil.check_limit(p_limit, 1, 10000, 'p_limit');

    if not counterfoil.retention_index_is_ready() then
        perform counterfoil.raise_invalid_state(
            'The journal''s retention index is missing, not ready or not valid.', 'retention_index_not_ready',
            'Run make prepare-indexes, then make verify, before log text is taken out of facts.'
        );
    end if;

    select b.org_ids, b.befores, b.share, b.looked_to into v_logs
    from counterfoil.begin_retention('logs', p_limit, v_now) as b;

    with due as materialized (
        select k.org_id, k.run_id, k.lane, k.first_seq, k.last_seq
        from unnest(v_logs.org_ids, v_logs.befores) as o (org_id, before)
        cross join lateral (
            select d.org_id, d.run_id, d.lane, d.first_seq, d.last_seq
            from counterfoil.deliveries as d
            where d.org_id = o.org_id and d.logs_purged_at is null and d.delivered_at < o.before
            order by d.delivered_at
            limit v_logs.share
            for no key update skip locked
        ) as k
    ),

    stripped as (
        update counterfoil.outbox as f
        set
            payload = s.payload,
            payload_digest = coalesce(f.payload_digest, counterfoil.canonical_digest(f.payload))
        from (
            -- Offset 0: a fact is stripped once, not once to look and once to write.
            select p.place, p.payload as before, counterfoil.strip_log_text(p.event_type, p.payload) as payload
            from due as u
            cross join lateral (
                -- Ordered, so that no index without the order will do: one of those reads the whole org.
                select b.ctid as place, b.event_type, b.payload
                from counterfoil.outbox as b
                where b.org_id = u.org_id and b.run_id = u.run_id and b.lane = u.lane
                    and b.seq between u.first_seq and u.last_seq
                order by b.seq
            ) as p
            offset 0
        ) as s
        where f.ctid = s.place and s.payload <> s.before
    ),

    marked as (
        update counterfoil.deliveries as d
        set logs_purged_at = v_now
        from due as u
        where d.org_id = u.org_id and d.run_id = u.run_id and d.lane = u.lane and d.first_seq = u.first_seq
        returning d.org_id
    )

    select coalesce(sum(m.deliveries), 0)::bigint, max(m.deliveries) into v_stripped, v_most_stripped
    from (
        select count(*) as deliveries
        from marked as d
        group by d.org_id
    ) as m;
    v_more := counterfoil.end_retention('logs', v_logs.looked_to, coalesce(v_most_stripped = v_logs.share, false));

    select b.org_ids, b.befores, b.share, b.looked_to into v_facts
    from counterfoil.begin_retention('facts', p_limit, v_now) as b;

    select
        array_agg(k.org_id) as org_ids,
        array_agg(k.run_id) as run_ids,
        array_agg(k.lane) as lanes,
        array_agg(k.first_seq) as first_seqs,
        array_agg(k.last_seq) as last_seqs
    into v_due
    from unnest(v_facts.org_ids, v_facts.befores) as o (org_id, before)
    cross join lateral (
        select d.org_id, d.run_id, d.lane, d.first_seq, d.last_seq
        from counterfoil.deliveries as d
        where d.org_id = o.org_id and d.delivered_at > '-infinity' and d.delivered_at < o.before
        order by d.delivered_at
        limit v_facts.share
        for update skip locked
    ) as k;

    -- Read anew under the lock: a moment before it another call may have stripped these facts, and moved them.
    with due as materialized (
        select k.org_id, k.run_id, k.lane, k.first_seq, k.last_seq
        from unnest(v_due.org_ids, v_due.run_ids, v_due.lanes, v_due.first_seqs, v_due.last_seqs)
            as k (org_id, run_id, lane, first_seq, last_seq)
    ),

    removed as (
        delete from counterfoil.outbox as f
        using due as u
        cross join lateral (
            select b.ctid as place
            from counterfoil.outbox as b
            where b.org_id = u.org_id and b.run_id = u.run_id and b.lane = u.lane
                and b.seq between u.first_seq and u.last_seq
            order by b.seq
        ) as p
        where f.ctid = p.place
        returning 1
    ),

    -- The next fact counts on from what is removed.
    remembered as (
        insert into counterfoil.purged_facts as p (org_id, run_id, through_seq)
        select g.org_id, g.run_id, g.last_seq
        from (
            select u.org_id, u.run_id, max(u.last_seq) as last_seq
            from due as u
            group by u.org_id, u.run_id
        ) as g
        where (
            select f.seq
            from counterfoil.outbox as f
            where f.org_id = g.org_id and f.run_id = g.run_id
            order by f.seq desc
            limit 1
        ) <= g.last_seq
        order by g.org_id, g.run_id
        on conflict on constraint purged_facts_pkey do update
        set through_seq = greatest(p.through_seq, excluded.through_seq)
    ),

    forgotten as (
        delete from counterfoil.deliveries as d
        using due as u
        where d.org_id = u.org_id and d.run_id = u.run_id and d.lane = u.lane and d.first_seq = u.first_seq
        returning d.org_id
    )

    select (select count(*) from removed), max(m.deliveries)
    into v_removed, v_most_forgotten
    from (
        select count(*) as deliveries
        from forgotten as d
        group by d.org_id
    ) as m;
    v_more := counterfoil.end_retention('facts', v_facts.looked_to, coalesce(v_most_forgotten = v_facts.share, false))
        or v_more;

    return query select v_stripped, v_removed, v_more;
end
$function$;

comment on function counterfoil.purge_delivered(integer) is
'Retention of facts, one bounded batch: at most p_limit (1…10000) deliveries past log_retention lose log text, at most p_limit past outbox_retention are removed with their facts. Answers deliveries stripped, facts removed, and whether a full batch was found, so that there may be more.';

revoke all on function counterfoil.purge_delivered(integer) from public;
