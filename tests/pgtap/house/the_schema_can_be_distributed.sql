-- SPEC 2.9 and DESIGN "Beyond one machine": keys and foreign keys start with org_id, nothing on a hot path
-- comes from a sequence, and no trigger runs behind a function's back.
begin;
select plan(5);

-- Tables without org_id are small and belong to the installation as a whole.
create temporary table reference_tables (name text primary key) on commit drop;
insert into reference_tables (name)
values ('settings'), ('schema_migrations'), ('schema_functions'), ('workers'), ('listeners'), ('retention_turns'),
    ('limits_version');

select is_empty(
    $$
    select c.relname
    from pg_catalog.pg_class as c
    where c.relnamespace = 'counterfoil'::regnamespace
        and c.relkind in ('r', 'p')
        and not exists (select from pg_temp.reference_tables as r where r.name = c.relname)
        and not exists (
            select
            from pg_catalog.pg_attribute as t
            where t.attrelid = c.oid and t.attname = 'org_id' and t.attnotnull
        )
    $$,
    'every table that is not a small reference table carries org_id'
);

select is_empty(
    $$
    select k.conrelid::regclass::text, k.conname
    from pg_catalog.pg_constraint as k
    inner join pg_catalog.pg_class as c on c.oid = k.conrelid
    inner join pg_catalog.pg_attribute as t on t.attrelid = k.conrelid and t.attnum = k.conkey[1]
    where k.connamespace = 'counterfoil'::regnamespace
        and k.contype in ('p', 'u', 'f')
        and t.attname <> 'org_id'
        and not exists (select from pg_temp.reference_tables as r where r.name = c.relname)
    $$,
    'every primary key, unique constraint and foreign key starts with org_id'
);

select is_empty(
    $$
    select i.indexrelid::regclass::text
    from pg_catalog.pg_index as i
    inner join pg_catalog.pg_class as c on c.oid = i.indrelid
    left join pg_catalog.pg_attribute as t on t.attrelid = i.indrelid and t.attnum = i.indkey[0]
    where c.relnamespace = 'counterfoil'::regnamespace
        and i.indisunique
        and t.attname is distinct from 'org_id'
        and not exists (select from pg_temp.reference_tables as r where r.name = c.relname)
    $$,
    'every unique index starts with org_id'
);

select is_empty(
    $$
    select c.relname
    from pg_catalog.pg_class as c
    where c.relnamespace = 'counterfoil'::regnamespace and c.relkind = 'S'
    $$,
    'there is no sequence'
);

select is_empty(
    $$
    select g.tgrelid::regclass::text, g.tgname
    from pg_catalog.pg_trigger as g
    inner join pg_catalog.pg_class as c on c.oid = g.tgrelid
    where c.relnamespace = 'counterfoil'::regnamespace and not g.tgisinternal
    $$,
    'there is no trigger'
);

select * from finish();
rollback;
