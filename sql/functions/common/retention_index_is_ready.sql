-- retention_index_is_ready: whether the journal, which keeps the lines that facts lose, can itself be pruned.
--
-- Promises: true when run_journal_retention_idx exists, is ready and valid.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.retention_index_is_ready()
returns boolean
language sql
stable
parallel safe
called on null input
security invoker
set search_path = pg_catalog, pg_temp
as $function$
    select exists (
        select
        from pg_index as i
        inner join pg_class as c on c.oid = i.indexrelid
        where i.indrelid = 'counterfoil.run_journal'::regclass
            and c.relname = 'run_journal_retention_idx' and i.indisready and i.indisvalid
    )
$function$;

comment on function counterfoil.retention_index_is_ready() is
'Whether the journal''s retention index exists and is ready and valid. Private.';

revoke all on function counterfoil.retention_index_is_ready() from public;
