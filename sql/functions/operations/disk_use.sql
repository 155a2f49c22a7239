-- disk_use: what the tables that grow take of the disk, and what building their indexes anew would give back.
--
-- Promises: for each, megabytes with indexes, those of its indexes, and how many of them a reindex frees at least: what its
--           whole unique indexes have beyond pages that are half full, by the last statistics.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.disk_use()
returns jsonb
language sql
stable
parallel safe
called on null input
security invoker
set search_path = pg_catalog, pg_temp
as $function$
    select jsonb_object_agg(t.relname, jsonb_build_object(
        'megabytes', pg_total_relation_size(t.oid) >> 20,
        'indexMegabytes', pg_indexes_size(t.oid) >> 20,
        'reindexFreesMegabytes', (
            select coalesce(sum(greatest(0, pg_relation_size(w.indexrelid) - w.filled)), 0)::bigint >> 20
            from (
                select
                    i.indexrelid,
                    -- A tuple: header and columns, on a boundary of eight, and its pointer.
                    greatest(t.reltuples, 0) * (ceil((8 + sum(s.avg_width)) / 8.0) * 8 + 4) * 2 as filled
                from pg_index as i
                inner join pg_class as x on x.oid = i.indexrelid
                inner join pg_am as m on m.oid = x.relam and m.amname = 'btree'
                cross join lateral unnest(i.indkey::smallint[]) as k (attnum)
                inner join pg_attribute as a on a.attrelid = i.indrelid and a.attnum = k.attnum
                inner join pg_stats as s on s.schemaname = n.nspname and s.tablename = t.relname and s.attname = a.attname
                where i.indrelid = t.oid and i.indisunique and i.indpred is null and i.indexprs is null
                group by i.indexrelid
            ) as w
        )
    ))
    from unnest(array[
        'counterfoil.run_journal', 'counterfoil.outbox', 'counterfoil.deliveries', 'counterfoil.ledger_events',
        'counterfoil.step_receipts', 'counterfoil.runs'
    ]::regclass[]) as g (oid)
    inner join pg_class as t on t.oid = g.oid
    inner join pg_namespace as n on n.oid = t.relnamespace
$function$;

comment on function counterfoil.disk_use() is
'Megabytes of the tables that grow and of their indexes, and how many a reindex would free at least. Private.';

revoke all on function counterfoil.disk_use() from public;
