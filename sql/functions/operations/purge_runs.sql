-- purge_runs: forgets runs that ended long ago.
--
-- Promises: removes at most p_limit runs that ended longer than ledger_retention ago, the oldest of an org first, with their
--           launches, attempts, waits and signals; by an org's own retention where it has one, each org its share; none of
--           which a fact is left, pending, blocked or kept by outbox_retention. Answers how many, and whether there may be
--           more. Several at once share the work.
-- Locks:    the runs it removes, passing over locked ones; the row of its turn, if free.
-- Raises:   RL001 p_limit out of range.
-- Since:    1

create or replace function counterfoil.purge_runs(p_limit integer default 1000)
returns table (runs bigint, more boolean)
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
    v_now timestamptz := clock_timestamp();
    v_turn record;
    v_old tid[];
    v_removed bigint;
    v_most bigint;
    v_more boolean;
begin
    perform counterfoil.check_limit(p_limit, 1, 10000, 'p_limit');
    select b.org_ids, b.befores, b.share, b.looked_to into v_turn
    from counterfoil.begin_retention('runs', p_limit, v_now) as b;

    select array_agg(k.place) into v_old
    from unnest(v_turn.org_ids, v_turn.befores) as o (org_id, before)
    cross join lateral (
        select r.ctid as place
        from counterfoil.runs as r
        where r.org_id = o.org_id and r.ended_at is not null and r.ended_at < o.before
            and not counterfoil.run_has_remains(r.org_id, r.run_id)
        order by r.ended_at
        limit v_turn.share
        for update of r skip locked
    ) as k;

    -- Looked at anew under the lock: a moment before it a last fact or a child may have come, which changes no run's row.
    with removed as (
        delete from counterfoil.runs as r
        where r.ctid = any (v_old) and not counterfoil.run_has_remains(r.org_id, r.run_id)
        returning r.org_id
    )

    select coalesce(sum(m.runs), 0)::bigint, max(m.runs) into v_removed, v_most
    from (
        select count(*) as runs
        from removed as r
        group by r.org_id
    ) as m;

    v_more := counterfoil.end_retention('runs', v_turn.looked_to, coalesce(v_most = v_turn.share, false));
    return query select v_removed, v_more;
end
$function$;

comment on function counterfoil.purge_runs(integer) is
'Removes runs that ended longer than ledger_retention ago and have no fact and no child left, p_limit (1…10000) at most; answers how many and whether a full batch was found. Private.';

revoke all on function counterfoil.purge_runs(integer) from public;
