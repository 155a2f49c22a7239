-- purge_receipts: forgets step receipts that were settled long ago.
--
-- Promises: removes at most p_limit receipts settled longer than receipt_retention ago, the oldest of an org first, and as many
--           observations made that long ago; by an org's own retention where it has one, each org its share. Never a receipt
--           that runs or waits. Answers how many of each, and whether there may be more. Several at once share the work.
-- Locks:    the rows it removes, passing over locked ones; the rows of its turns, if free.
-- Raises:   RL001 p_limit out of range.
-- Since:    1

create or replace function counterfoil.purge_receipts(p_limit integer default 1000)
returns table (receipts bigint, observations bigint, more boolean)
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
    v_receipts bigint;
    v_observations bigint;
    v_most bigint;
    v_more boolean;
begin
    perform counterfoil.check_limit(p_limit, 1, 100000, 'p_limit');

    select b.org_ids, b.befores, b.share, b.looked_to into v_turn
    from counterfoil.begin_retention('receipts', p_limit, v_now) as b;
    -- Rows under our lock stay where they are, so their places name them.
    with old as materialized (
        select k.place
        from unnest(v_turn.org_ids, v_turn.befores) as o (org_id, before)
        cross join lateral (
            select s.ctid as place
            from counterfoil.step_receipts as s
            where s.org_id = o.org_id and s.settled_at is not null and s.settled_at < o.before
            order by s.settled_at
            limit v_turn.share
            for update skip locked
        ) as k
    ),

    removed as (
        delete from counterfoil.step_receipts as s
        using old as o
        where s.ctid = o.place
        returning s.org_id
    )

    select coalesce(sum(m.receipts), 0)::bigint, max(m.receipts) into v_receipts, v_most
    from (
        select count(*) as receipts
        from removed as r
        group by r.org_id
    ) as m;
    v_more := counterfoil.end_retention('receipts', v_turn.looked_to, coalesce(v_most = v_turn.share, false));

    select b.org_ids, b.befores, b.share, b.looked_to into v_turn
    from counterfoil.begin_retention('observations', p_limit, v_now) as b;
    with old as materialized (
        select k.place
        from unnest(v_turn.org_ids, v_turn.befores) as o (org_id, before)
        cross join lateral (
            select s.ctid as place
            from counterfoil.observations as s
            where s.org_id = o.org_id and s.updated_at > '-infinity' and s.updated_at < o.before
            order by s.updated_at
            limit v_turn.share
            for update skip locked
        ) as k
    ),

    removed as (
        delete from counterfoil.observations as s
        using old as o
        where s.ctid = o.place
        returning s.org_id
    )

    select coalesce(sum(m.observations), 0)::bigint, max(m.observations) into v_observations, v_most
    from (
        select count(*) as observations
        from removed as r
        group by r.org_id
    ) as m;
    v_more := counterfoil.end_retention('observations', v_turn.looked_to, coalesce(v_most = v_turn.share, false)) or v_more;

    return query select v_receipts, v_observations, v_more;
end
$function$;

comment on function counterfoil.purge_receipts(integer) is
'Removes step receipts settled, and observations made, longer than receipt_retention ago, p_limit of each at most; answers how many and whether there may be more.';

revoke all on function counterfoil.purge_receipts(integer) from public;
