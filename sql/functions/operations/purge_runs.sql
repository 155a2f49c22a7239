-- purge_runs: forgets runs that ended long ago.
--
-- Promises: removes at most p_limit runs that ended longer than ledger_retention ago, the oldest first, with their launches,
--           attempts, waits and signals; none of which a fact is left, pending, blocked or kept by outbox_retention. Answers
--           how many, and whether there may be more. Several at once share the work.
-- Locks:    the runs it removes, passing over locked ones.
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
as $function$
declare
    v_before timestamptz := clock_timestamp() - make_interval(secs => counterfoil.setting_integer('ledger_retention'));
    v_removed bigint;
begin
    perform counterfoil.check_limit(p_limit, 1, 10000, 'p_limit');

    with old as materialized (
        select r.ctid as place
        from counterfoil.runs as r
        where r.ended_at < v_before
            and not exists (
                select from counterfoil.lanes as l where l.org_id = r.org_id and l.run_id = r.run_id
            )
            and not exists (
                select from counterfoil.outbox as o where o.org_id = r.org_id and o.run_id = r.run_id
            )
            -- A family goes from its leaves: nothing changes in a run that stays.
            and not exists (
                select from counterfoil.runs as c where c.org_id = r.org_id and c.parent_run_id = r.run_id
            )
        order by r.ended_at
        limit p_limit
        for update of r skip locked
    )

    delete from counterfoil.runs as r
    using old as o
    where r.ctid = o.place and r.ended_at < v_before;
    get diagnostics v_removed = row_count;

    return query select v_removed, v_removed = p_limit;
end
$function$;

comment on function counterfoil.purge_runs(integer) is
'Removes runs that ended longer than ledger_retention ago and have no fact and no child left, p_limit (1…10000) at most; answers how many and whether a full batch was found. Private.';

revoke all on function counterfoil.purge_runs(integer) from public;
