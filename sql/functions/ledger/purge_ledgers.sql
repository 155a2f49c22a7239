-- purge_ledgers: forgets the history of runs that ended long ago.
--
-- Promises: ledgers of runs that ended longer than ledger_retention ago, the oldest first, go with their events and keys:
--           about p_limit events a call, a ledger of more events over several. Never one of a run that this database still
--           has facts of to deliver: its last delivery may be on its way a second time. Several at once share the work.
-- Locks:    the ledgers it removes, passing over locked ones.
-- Raises:   RL001 p_limit out of range.
-- Since:    1

create or replace function counterfoil.purge_ledgers(p_limit integer default 1000)
returns table (ledgers bigint, events bigint, more boolean)
language plpgsql
volatile
parallel unsafe
called on null input
security definer
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_before timestamptz := clock_timestamp() - make_interval(secs => counterfoil.setting_integer('ledger_retention'));
    v_org_ids text[];
    v_run_ids text[];
    v_ledgers bigint;
    v_events bigint;
begin
    perform counterfoil.check_limit(p_limit, 1, 100000, 'p_limit');

    select array_agg(o.org_id order by o.ended_at), array_agg(o.run_id order by o.ended_at)
    into v_org_ids, v_run_ids
    from (
        select l.org_id, l.run_id, l.ended_at
        from counterfoil.ledgers as l
        where l.ended_at < v_before
            and not exists (
                select from counterfoil.lanes as p where p.org_id = l.org_id and p.run_id = l.run_id and p.lane = 'lifecycle'
            )
        order by l.ended_at
        limit p_limit
        for update of l skip locked
    ) as o;

    with taken as materialized (
        select e.ctid as place
        from unnest(v_org_ids, v_run_ids) as k (org_id, run_id)
        cross join lateral (
            select b.ctid
            from counterfoil.ledger_events as b
            where b.org_id = k.org_id and b.run_id = k.run_id
            order by b.position
            limit p_limit
        ) as e
        limit p_limit
    )

    delete from counterfoil.ledger_events as e
    using taken as t
    where e.ctid = t.place;
    get diagnostics v_events = row_count;

    delete from counterfoil.ledgers as l
    using unnest(v_org_ids, v_run_ids) as k (org_id, run_id)
    where l.org_id = k.org_id and l.run_id = k.run_id
        and not exists (
            select from counterfoil.ledger_events as e where e.org_id = l.org_id and e.run_id = l.run_id
        );
    get diagnostics v_ledgers = row_count;

    return query select v_ledgers, v_events, v_events = p_limit or v_ledgers = p_limit;
end
$function$;

comment on function counterfoil.purge_ledgers(integer) is
'Removes ledgers of runs that ended longer than ledger_retention ago, about p_limit (1…100000) events a call; answers ledgers and events removed and whether there may be more.';

revoke all on function counterfoil.purge_ledgers(integer) from public;
