-- purge_journal: forgets journal entries that were indexed long ago.
--
-- Promises: removes at most p_limit entries indexed longer than journal_retention ago, the oldest first; never one of a run
--           that has not ended. Answers how many, and whether there may be more. Several at once share the work.
-- Locks:    the entries it removes, passing over locked ones.
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
as $function$
declare
    v_before timestamptz := clock_timestamp() - make_interval(secs => counterfoil.setting_integer('journal_retention'));
    v_removed bigint;
begin
    perform counterfoil.check_limit(p_limit, 1, 100000, 'p_limit');

    with old as materialized (
        select j.ctid as place
        from counterfoil.run_journal as j
        where j.recorded_at < v_before
            and not exists (
                select from counterfoil.runs as r
                where r.org_id = j.org_id and r.run_id = j.run_id and r.ended_at is null
            )
        order by j.recorded_at
        limit p_limit
        for update of j skip locked
    )

    delete from counterfoil.run_journal as j
    using old as o
    where j.ctid = o.place and j.recorded_at < v_before;
    get diagnostics v_removed = row_count;

    return query select v_removed, v_removed = p_limit;
end
$function$;

comment on function counterfoil.purge_journal(integer) is
'Removes journal entries indexed longer than journal_retention ago, of runs that have ended, p_limit (1…100000) at most; answers how many and whether a full batch was found.';

revoke all on function counterfoil.purge_journal(integer) from public;
