-- Every object of the schema says what it is, in the catalog, where a DBA meets it.
begin;
select plan(4);

select is_empty(
    $$
    select c.oid::regclass::text
    from pg_catalog.pg_class as c
    where c.relnamespace = 'counterfoil'::regnamespace
        and c.relkind in ('r', 'p', 'v', 'm', 'f')
        and coalesce(obj_description(c.oid, 'pg_class'), '') = ''
    $$,
    'every table and view has a comment'
);

select is_empty(
    $$
    select c.oid::regclass::text, t.attname
    from pg_catalog.pg_class as c
    inner join pg_catalog.pg_attribute as t on t.attrelid = c.oid
    where c.relnamespace = 'counterfoil'::regnamespace
        and c.relkind in ('r', 'p', 'v', 'm', 'f')
        and not c.relispartition
        and t.attnum > 0
        and not t.attisdropped
        and coalesce(col_description(c.oid, t.attnum), '') = ''
    $$,
    'every column has a comment'
);

select is_empty(
    $$
    select p.oid::regprocedure::text
    from pg_catalog.pg_proc as p
    where p.pronamespace = 'counterfoil'::regnamespace
        and coalesce(obj_description(p.oid, 'pg_proc'), '') = ''
    $$,
    'every function has a comment'
);

select isnt_empty(
    $$ select c.oid from pg_catalog.pg_class as c where c.relnamespace = 'counterfoil'::regnamespace $$,
    'there are tables to look at'
);

select * from finish();
rollback;
