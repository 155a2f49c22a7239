-- purge_runs: forgets runs that ended long ago, with everything about them.
--
-- Promises: removes at most p_limit ledgers that ended longer than ledger_retention ago, the first to end first, each with its
--           run, the run's attempts, launch, facts and delivery log. Never a run with a fact that is pending or blocked. Journal
--           and receipts have retentions of their own. Answers how many ledgers and runs it removed; the caller repeats
--           until both are nought. Passes over what others have locked.
-- Locks:    the runs, then their ledgers; what belongs to them by their deletion.
-- Raises:   RL001 p_limit out of range.
-- Since:    1

create or replace function counterfoil.purge_runs(p_limit integer default 1000)
returns table (ledgers bigint, runs bigint)
language plpgsql
volatile
parallel unsafe
called on null input
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $function$
declare
    v_before timestamptz := clock_timestamp() - make_interval(secs => counterfoil.setting_integer('ledger_retention'));
    v_org_ids text[];
    v_run_ids text[];
    v_run_rows tid[];
    v_ledger_rows tid[];
    v_ledgers bigint;
    v_runs bigint;
begin
    perform counterfoil.check_limit(p_limit, 1, 100000, 'p_limit');

    select array_agg(o.org_id), array_agg(o.run_id)
    into v_org_ids, v_run_ids
    from (
        select g.org_id, g.run_id
        from counterfoil.ledgers as g
        where
            g.ended_at < v_before
            and not exists (
                select
                from counterfoil.lanes as l
                where l.org_id = g.org_id and l.run_id = g.run_id
            )
        order by g.ended_at
        limit p_limit
    ) as o;

    -- A run that another holds, or that has not ended here, keeps its ledger. Rows under our lock stay where they are, so
    -- their places name them, and no plan can read more than these.
    select array_agg(k.org_id), array_agg(k.run_id), array_agg(h.row_id) filter (where h.row_id is not null)
    into v_org_ids, v_run_ids, v_run_rows
    from unnest(v_org_ids, v_run_ids) as k (org_id, run_id)
    left join lateral (
        select true as is_here
        from counterfoil.runs as r
        where r.org_id = k.org_id and r.run_id = k.run_id
        limit 1
    ) as t on true
    left join lateral (
        select r.ctid as row_id
        from counterfoil.runs as r
        where r.org_id = k.org_id and r.run_id = k.run_id and r.ended_at is not null
        limit 1
        for update skip locked
    ) as h on true
    where t.is_here is null or h.row_id is not null;

    select array_agg(h.row_id)
    into v_ledger_rows
    from unnest(v_org_ids, v_run_ids) as k (org_id, run_id)
    cross join lateral (
        select g.ctid as row_id
        from counterfoil.ledgers as g
        where g.org_id = k.org_id and g.run_id = k.run_id and g.ended_at < v_before
        limit 1
        for update
    ) as h;

    delete from counterfoil.runs as r
    where r.ctid = any(v_run_rows);
    get diagnostics v_runs = row_count;

    delete from counterfoil.ledgers as g
    where g.ctid = any(v_ledger_rows);
    get diagnostics v_ledgers = row_count;

    return query select v_ledgers, v_runs;
end
$function$;

comment on function counterfoil.purge_runs(integer) is
'Removes ledgers that ended longer than ledger_retention ago with their runs, p_limit at most, never one with pending facts; answers how many.';

revoke all on function counterfoil.purge_runs(integer) from public;
