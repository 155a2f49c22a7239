-- purge_journal: forgets journal entries that were indexed long ago.
--
-- Promises: removes at most p_limit entries indexed longer than journal_retention ago, the oldest of an org first; by an
--           org's own retention where it has one, each org its share. Answers how many, and whether there may be more.
--           Several at once share the work.
-- Locks:    the entries it removes, passing over locked ones; the row of its turn, if free.
-- Raises:   RL001 p_limit out of range.
-- Since:    1

create or replace function counterfoil.purge_journal(p_limit integer default 1000)
returns table (entries bigint, more boolean)
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
    v_removed bigint;
    v_most bigint;
    v_more boolean;
begin
    perform counterfoil.check_limit(p_limit, 1, 100000, 'p_limit');
    select b.org_ids, b.befores, b.share, b.looked_to into v_turn
    from counterfoil.begin_retention('journal', p_limit, v_now) as b;

    with old as materialized (
        select k.place
        from unnest(v_turn.org_ids, v_turn.befores) as o (org_id, before)
        cross join lateral (
            select j.ctid as place
            from counterfoil.run_journal as j
            where j.org_id = o.org_id and j.recorded_at > '-infinity' and j.recorded_at < o.before
            order by j.recorded_at
            limit v_turn.share
            for update skip locked
        ) as k
    ),

    removed as (
        delete from counterfoil.run_journal as j
        using old as o
        where j.ctid = o.place
        returning j.org_id
    )

    select coalesce(sum(m.entries), 0)::bigint, max(m.entries) into v_removed, v_most
    from (
        select count(*) as entries
        from removed as r
        group by r.org_id
    ) as m;

    v_more := counterfoil.end_retention('journal', v_turn.looked_to, coalesce(v_most = v_turn.share, false));
    return query select v_removed, v_more;
end
$function$;

comment on function counterfoil.purge_journal(integer) is
'Removes journal entries indexed longer than journal_retention (an org''s own where it has one) ago, p_limit (1…100000) at most; answers how many and whether there may be more.';

revoke all on function counterfoil.purge_journal(integer) from public;
