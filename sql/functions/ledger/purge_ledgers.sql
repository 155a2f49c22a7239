-- purge_ledgers: forgets the history of runs that ended long ago.
--
-- Promises: ledgers of runs that ended longer than ledger_retention ago, the oldest of an org first, go with their events and
--           keys: about p_limit events a call, a ledger of more events over several; by an org's own retention where it has
--           one, each org its share. Never one of a run that this database still has facts of to deliver: its last delivery
--           may be on its way a second time. Several at once share the work.
-- Locks:    the ledgers it removes, passing over locked ones; the row of its turn, if free.
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
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_material = off
set jit = off
as $function$
declare
    v_now timestamptz := clock_timestamp();
    v_turn record;
    v_org_ids text[];
    v_run_ids text[];
    v_ledgers bigint;
    v_events bigint;
    v_most bigint;
    v_most_ledgers bigint;
    v_more boolean;
begin
    perform counterfoil.check_limit(p_limit, 1, 100000, 'p_limit');
    select b.org_ids, b.befores, b.share, b.looked_to into v_turn
    from counterfoil.begin_retention('ledgers', p_limit, v_now) as b;

    select array_agg(k.org_id order by o.ordinality, k.ended_at), array_agg(k.run_id order by o.ordinality, k.ended_at)
    into v_org_ids, v_run_ids
    from unnest(v_turn.org_ids, v_turn.befores) with ordinality as o (org_id, before, ordinality)
    cross join lateral (
        select l.org_id, l.run_id, l.ended_at
        from counterfoil.ledgers as l
        where l.org_id = o.org_id and l.ended_at is not null and l.ended_at < o.before
            and not exists (
                select from counterfoil.lanes as p where p.org_id = l.org_id and p.run_id = l.run_id and p.lane = 'lifecycle'
            )
        order by l.ended_at
        limit v_turn.share
        for update of l skip locked
    ) as k;

    with taken as materialized (
        select e.place
        from unnest(v_turn.org_ids) as o (org_id)
        cross join lateral (
            select b.ctid as place
            from unnest(v_org_ids, v_run_ids) as k (org_id, run_id)
            inner join counterfoil.ledger_events as b on b.org_id = k.org_id and b.run_id = k.run_id
            where k.org_id = o.org_id
            limit v_turn.share
        ) as e
    ),

    removed as (
        delete from counterfoil.ledger_events as e
        using taken as t
        where e.ctid = t.place
        returning e.org_id
    )

    select coalesce(sum(m.events), 0)::bigint, max(m.events) into v_events, v_most
    from (
        select count(*) as events
        from removed as r
        group by r.org_id
    ) as m;

    with removed as (
        delete from counterfoil.ledgers as l
        using unnest(v_org_ids, v_run_ids) as k (org_id, run_id)
        where l.org_id = k.org_id and l.run_id = k.run_id
            and not exists (
                select from counterfoil.ledger_events as e where e.org_id = l.org_id and e.run_id = l.run_id
            )
        returning l.org_id
    )

    select coalesce(sum(m.ledgers), 0)::bigint, max(m.ledgers) into v_ledgers, v_most_ledgers
    from (
        select count(*) as ledgers
        from removed as r
        group by r.org_id
    ) as m;

    v_more := counterfoil.end_retention(
        'ledgers', v_turn.looked_to, coalesce(greatest(v_most, v_most_ledgers) = v_turn.share, false)
    );
    return query select v_ledgers, v_events, v_more;
end
$function$;

comment on function counterfoil.purge_ledgers(integer) is
'Removes ledgers of runs that ended longer than ledger_retention ago, about p_limit (1…100000) events a call; answers ledgers and events removed and whether there may be more.';

revoke all on function counterfoil.purge_ledgers(integer) from public;
