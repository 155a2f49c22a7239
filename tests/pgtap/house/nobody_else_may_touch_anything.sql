-- SPEC 13: nothing to PUBLIC; no role but the owner touches a table; definer functions pin their path.
begin;
select plan(6);

select is_empty(
    $$
    select p.oid::regprocedure::text
    from pg_catalog.pg_proc as p
    where p.pronamespace = 'counterfoil'::regnamespace
        and has_function_privilege('public', p.oid, 'execute')
    $$,
    'PUBLIC may execute no function'
);

select is_empty(
    $$
    select c.oid::regclass::text, a.grantee::regrole::text, a.privilege_type
    from pg_catalog.pg_class as c
    cross join lateral aclexplode(c.relacl) as a
    where c.relnamespace = 'counterfoil'::regnamespace and a.grantee <> c.relowner
    $$,
    'no role but the owner has a right on a table, view or sequence'
);

select is_empty(
    $$
    select c.oid::regclass::text, t.attname, a.grantee::regrole::text
    from pg_catalog.pg_class as c
    inner join pg_catalog.pg_attribute as t on t.attrelid = c.oid
    cross join lateral aclexplode(t.attacl) as a
    where c.relnamespace = 'counterfoil'::regnamespace and a.grantee <> c.relowner
    $$,
    'no role but the owner has a right on a column'
);

select is_empty(
    $$
    select n.nspname, a.privilege_type
    from pg_catalog.pg_namespace as n
    cross join lateral aclexplode(n.nspacl) as a
    where n.nspname = 'counterfoil' and a.grantee = 0
    $$,
    'PUBLIC has no right on the schema'
);

select is_empty(
    $$
    select p.oid::regprocedure::text
    from pg_catalog.pg_proc as p
    where p.pronamespace = 'counterfoil'::regnamespace
        and p.prosecdef
        and not coalesce(p.proconfig @> array['search_path=pg_catalog, pg_temp'], false)
    $$,
    'every definer function pins search_path = pg_catalog, pg_temp'
);

select isnt_empty(
    $$ select p.oid from pg_catalog.pg_proc as p where p.pronamespace = 'counterfoil'::regnamespace $$,
    'there are functions to look at'
);

select * from finish();
rollback;
