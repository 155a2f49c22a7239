-- purge_delivered: takes delivered facts out, their log text first.
--
-- Promises: at most p_limit deliveries past log_retention lose their facts' log text, and at most p_limit past
--           outbox_retention go with their facts. Counts from the acknowledgement, never from a clock at commit.
--           A pending or blocked fact has no delivery and is never touched. Several at once share the work.
-- Locks:    the deliveries it takes, skipping those of others; then their facts.
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
as $function$
declare
    v_now timestamptz := clock_timestamp();
    v_logs_before timestamptz;
    v_facts_before timestamptz;
    v_stripped bigint;
    v_removed bigint;
    v_facts bigint;
begin
    perform counterfoil.check_limit(p_limit, 1, 10000, 'p_limit');

    if not counterfoil.retention_index_is_ready() then
        perform counterfoil.raise_invalid_state(
            'The journal''s retention index is missing, not ready or not valid.', 'retention_index_not_ready',
            'Run make prepare-indexes, then make verify, before log text is taken out of facts.'
        );
    end if;

    v_logs_before := v_now - make_interval(secs => counterfoil.setting_integer('log_retention'));
    v_facts_before := v_now - make_interval(secs => counterfoil.setting_integer('outbox_retention'));

    with due as materialized (
        select d.org_id, d.run_id, d.lane, d.first_seq, d.last_seq
        from counterfoil.deliveries as d
        where d.logs_purged_at is null and d.delivered_at < v_logs_before
        order by d.delivered_at
        limit p_limit
        for no key update skip locked
    ),

    stripped as (
        update counterfoil.outbox as o
        set
            payload = counterfoil.strip_log_text(o.event_type, o.payload),
            payload_digest = coalesce(o.payload_digest, counterfoil.canonical_digest(o.payload))
        from due as d
        where o.org_id = d.org_id and o.run_id = d.run_id and o.lane = d.lane
            and o.seq between d.first_seq and d.last_seq
            and counterfoil.strip_log_text(o.event_type, o.payload) <> o.payload
    ),

    marked as (
        update counterfoil.deliveries as d
        set logs_purged_at = v_now
        from due as u
        where d.org_id = u.org_id and d.run_id = u.run_id and d.lane = u.lane and d.first_seq = u.first_seq
        returning 1
    )

    select count(*) into v_stripped from marked;

    with due as materialized (
        select d.org_id, d.run_id, d.lane, d.first_seq, d.last_seq
        from counterfoil.deliveries as d
        where d.delivered_at < v_facts_before
        order by d.delivered_at
        limit p_limit
        for update skip locked
    ),

    removed as (
        delete from counterfoil.outbox as o
        using due as d
        where o.org_id = d.org_id and o.run_id = d.run_id and o.lane = d.lane
            and o.seq between d.first_seq and d.last_seq
        returning 1
    ),

    forgotten as (
        delete from counterfoil.deliveries as d
        using due as u
        where d.org_id = u.org_id and d.run_id = u.run_id and d.lane = u.lane and d.first_seq = u.first_seq
        returning 1
    )

    select (select count(*) from removed), (select count(*) from forgotten)
    into v_facts, v_removed;

    return query select v_stripped, v_facts, v_stripped = p_limit or v_removed = p_limit;
end
$function$;

comment on function counterfoil.purge_delivered(integer) is
'Retention of facts, one bounded batch: at most p_limit (1…10000) deliveries past log_retention lose log text, at most p_limit past outbox_retention are removed with their facts. Answers deliveries stripped, facts removed, and whether a full batch was found, so that there may be more.';

revoke all on function counterfoil.purge_delivered(integer) from public;
