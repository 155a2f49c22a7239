-- schema_version: which schema a driver has before it.
--
-- Promises: the number of the latest applied migration. A driver refuses a version that it does not know (RL009).
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.schema_version()
returns integer
language sql
stable
parallel safe
called on null input
security definer
set search_path = pg_catalog, pg_temp
as $function$
    select max(m.version)
    from counterfoil.schema_migrations as m
$function$;

comment on function counterfoil.schema_version() is
'Version of the installed schema: the number of the latest applied migration.';

revoke all on function counterfoil.schema_version() from public;
