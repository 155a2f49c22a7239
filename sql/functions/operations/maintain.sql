-- maintain: everything that has to be done now and then, in one bounded call.
--
-- Promises: fires up to p_limit schedules that are due, recovers up to p_limit runs of every release lane that has any to
--           look after, takes one batch of p_limit of each kind out of what is past its retention and of workers and
--           listeners that are gone, and brings the statistics
--           of one table up to date where autovacuum has not. Answers counts and "more": true while a batch was full, so that
--           the caller, a timer or pg_cron, may call again at once. Several at once share the work and wait for nobody,
--           but where two admissions want the last places under a limit. Fact retention is left out, and says so, while the
--           journal's retention index is not ready.
-- Locks:    what fire_due_schedules() locks; then what recover_attempts(), purge_delivered(), purge_journal(),
--           purge_receipts(), purge_ledgers() and purge_runs() lock, passing over what is locked; last, against another
--           vacuum or analyze, the table that it analyzes.
-- Raises:   RL001 p_limit out of range.
-- Since:    1

create or replace function counterfoil.maintain(p_limit integer default 1000)
returns jsonb
language plpgsql
volatile
parallel unsafe
called on null input
security definer
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_lanes text[];
    v_fired jsonb;
    v_recovered jsonb;
    v_full boolean;
    v_index_ready boolean := counterfoil.retention_index_is_ready();
    v_facts record;
    v_journal record;
    v_receipts record;
    v_ledgers record;
    v_runs record;
    v_forgotten bigint;
    v_analyzed text;
begin
    perform counterfoil.check_limit(p_limit, 1, 1000, 'p_limit');

    -- First, since an admission may wait for another and must hold nothing then.
    select coalesce(jsonb_object_agg(o.outcome, o.firings), '{}'), coalesce(sum(o.firings) >= p_limit, false)
    into v_fired, v_full
    from (
        select f.outcome, count(*) as firings
        from counterfoil.fire_due_schedules(p_limit) as f
        group by f.outcome
    ) as o;

    -- One index probe per release lane, however many runs each has.
    with recursive lanes as (
        select (
            select least(
                (select min(a.release_lane) from counterfoil.attempts as a where a.lease_expires_at > '-infinity'),
                (
                    select min(d.release_lane) from counterfoil.runs as d
                    where d.ended_at is null and d.deadline_at is not null
                ),
                (
                    select min(c.release_lane) from counterfoil.runs as c
                    where c.ended_at is null and c.cancel_deadline_at is not null
                )
            )
        ) as name
        union all
        select (
            select least(
                (
                    select min(a.release_lane) from counterfoil.attempts as a
                    where a.lease_expires_at > '-infinity' and a.release_lane > l.name
                ),
                (
                    select min(d.release_lane) from counterfoil.runs as d
                    where d.ended_at is null and d.deadline_at is not null and d.release_lane > l.name
                ),
                (
                    select min(c.release_lane) from counterfoil.runs as c
                    where c.ended_at is null and c.cancel_deadline_at is not null and c.release_lane > l.name
                )
            )
        )
        from lanes as l
        where l.name is not null
    )

    select coalesce(array_agg(l.name), '{}') into v_lanes
    from lanes as l
    where l.name is not null;

    select coalesce(jsonb_object_agg(o.outcome, o.runs), '{}'), v_full or coalesce(bool_or(o.is_full), false)
    into v_recovered, v_full
    from (
        select g.outcome, sum(g.runs) as runs, bool_or(g.of_lane >= p_limit) as is_full
        from (
            select r.outcome, count(*) as runs, sum(count(*)) over (partition by l.name) as of_lane
            from unnest(v_lanes) as l (name)
            cross join lateral counterfoil.recover_attempts(p_limit, l.name) as r
            group by l.name, r.outcome
        ) as g
        group by g.outcome
    ) as o;

    select 0::bigint as logs_purged, 0::bigint as facts_removed, false as more into v_facts;
    if v_index_ready then
        select p.logs_purged, p.facts_removed, p.more into v_facts
        from counterfoil.purge_delivered(p_limit) as p;
    end if;
    select p.entries, p.more into v_journal
    from counterfoil.purge_journal(p_limit) as p;
    select p.receipts, p.observations, p.more into v_receipts
    from counterfoil.purge_receipts(p_limit) as p;
    select p.ledgers, p.events, p.more into v_ledgers
    from counterfoil.purge_ledgers(p_limit) as p;
    select p.runs, p.more into v_runs
    from counterfoil.purge_runs(p_limit) as p;

    v_forgotten := counterfoil.forget_processes(p_limit);
    v_analyzed := counterfoil.refresh_statistics();

    return jsonb_build_object(
        'schedulesFired', v_fired,
        'recovered', v_recovered,
        'deliveriesStripped', v_facts.logs_purged,
        'factsRemoved', v_facts.facts_removed,
        'factRetentionReady', v_index_ready,
        'journalEntriesRemoved', v_journal.entries,
        'receiptsRemoved', v_receipts.receipts,
        'observationsRemoved', v_receipts.observations,
        'ledgersRemoved', v_ledgers.ledgers,
        'ledgerEventsRemoved', v_ledgers.events,
        'processesForgotten', v_forgotten,
        'runsRemoved', v_runs.runs,
        'tableAnalyzed', v_analyzed,
        'more', v_full or v_facts.more or v_journal.more or v_ledgers.more or v_runs.more or v_receipts.more
    );
end
$function$;

comment on function counterfoil.maintain(integer) is
'Firing of schedules, recovery of runs, one batch of every retention, p_limit (1…1000) of a kind, and statistics: counts as JSON, with "more" while a batch was full. For a timer, counterfoil maintain, or pg_cron.';

revoke all on function counterfoil.maintain(integer) from public;
