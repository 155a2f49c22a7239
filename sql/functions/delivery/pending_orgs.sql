-- pending_orgs: the orgs that have pending facts.
--
-- Promises: each once, by hopping from org to org along the key: one probe an org, however many lanes it has.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.pending_orgs()
returns setof text
language sql
stable
parallel safe
called on null input
security invoker
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
as $function$
    with recursive orgs as (
        (select l.org_id from counterfoil.lanes as l order by l.org_id limit 1)
        union all
        select (
            select l.org_id from counterfoil.lanes as l where l.org_id > o.org_id order by l.org_id limit 1
        )
        from orgs as o
        where o.org_id is not null
    )

    select o.org_id from orgs as o where o.org_id is not null
$function$;

comment on function counterfoil.pending_orgs() is
'Orgs with pending facts, found with one index probe each. Private.';

revoke all on function counterfoil.pending_orgs() from public;
