-- refresh_statistics: brings the statistics of the table that needs it most up to date.
--
-- Promises: at most one of our tables is analyzed: one that was never analyzed and holds something, or one of which more
--           than a fifth has changed since, which autovacuum would have seen to if it came round. Answers its name, null
--           where all are in order or somebody else is at it. Reads a sample of at most 30,000 pages.
-- Locks:    the table, against another vacuum or analyze, to the end of the transaction; waits for none.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.refresh_statistics()
returns text
language plpgsql
volatile
parallel unsafe
called on null input
security invoker
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_schema text;
    v_table text;
begin
    -- What another session has changed since this transaction began counts as well.
    perform pg_stat_clear_snapshot();
    select n.nspname::text, c.relname::text into v_schema, v_table
    from pg_class as c
    inner join pg_namespace as n on n.oid = c.relnamespace
    inner join pg_stat_user_tables as s on s.relid = c.oid
    where c.relnamespace = (
            select t.relnamespace
            from pg_class as t
            where t.oid = 'counterfoil.settings'::regclass
        )
        and c.relkind = 'r'
        and s.n_mod_since_analyze > 1000 + 0.2 * greatest(c.reltuples, 0)
        and not exists (
            select
            from pg_locks as k
            where k.relation = c.oid and k.granted and k.pid <> pg_backend_pid()
                and k.mode in (
                    'ShareUpdateExclusiveLock', 'ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock'
                )
        )
    order by s.n_mod_since_analyze desc
    limit 1;
    if v_table is not null then
        execute format('analyze (skip_locked) %I.%I', v_schema, v_table);
    end if;
    return v_table;
end
$function$;

comment on function counterfoil.refresh_statistics() is
'Analyzes one table of which much has changed since it was last analyzed, if any; answers its name. Private.';

revoke all on function counterfoil.refresh_statistics() from public;
