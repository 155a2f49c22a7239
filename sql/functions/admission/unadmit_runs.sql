-- unadmit_runs: gives back what was counted in for launches that somebody else admitted first.
--
-- Promises: places under the limits (give_places_back) and in the concurrency keys are as if these launches had not come.
-- Locks:    rows of admission_counters and concurrency_keys that the caller holds already.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.unadmit_runs(p_launches jsonb, p_ordinals bigint[])
returns void
language plpgsql
volatile
parallel unsafe
strict
security invoker
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
    v_org record;
begin
    for v_org in
        select g.org_id, count(*) as launches
        from unnest(p_ordinals) as n (ordinal)
        cross join lateral (
            values (''), (p_launches -> (n.ordinal - 1)::integer ->> 'orgId')
        ) as g (org_id)
        cross join lateral counterfoil.admission_rules(g.org_id) as r
        where case when g.org_id = '' then r.all_counted else r.org_counted end
        group by g.org_id
        order by g.org_id collate "C"
    loop
        perform counterfoil.give_places_back(v_org.org_id, v_org.launches);
    end loop;

    with keys as (
        select g.org_id, g.concurrency_key, count(*) as runs
        from unnest(p_ordinals) as n (ordinal)
        cross join lateral (
            select
                p_launches -> (n.ordinal - 1)::integer ->> 'orgId' as org_id,
                p_launches -> (n.ordinal - 1)::integer ->> 'concurrencyKey' as concurrency_key
        ) as g
        where g.concurrency_key is not null
        group by g.org_id, g.concurrency_key
    ),

    found as materialized (
        select c.row_at, g.runs
        from keys as g
        cross join lateral (
            select h.ctid as row_at
            from counterfoil.concurrency_keys as h
            where h.org_id = g.org_id and h.concurrency_key = g.concurrency_key
            limit 1
        ) as c
    ),

    -- Nobody's any more, where the run that came first has ended meanwhile.
    emptied as (
        delete from counterfoil.concurrency_keys as k
        using found as f
        where k.ctid = f.row_at and k.unended = f.runs
    )

    update counterfoil.concurrency_keys as k
    set unended = k.unended - f.runs
    from found as f
    where k.ctid = f.row_at and k.unended > f.runs;
end
$function$;

comment on function counterfoil.unadmit_runs(jsonb, bigint[]) is
'Gives back places and keys of launches that somebody else admitted first. Private.';

revoke all on function counterfoil.unadmit_runs(jsonb, bigint[]) from public;
