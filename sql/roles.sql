-- The five roles that may call Counterfoil's functions. They belong to the whole server, cannot
-- log in, own nothing and touch no table; a DBA grants them to logins. Safe to run again, and at
-- the same time from several databases of one server. Needs CREATEROLE.

do $roles$
declare
  v_role record;
begin
  for v_role in
    select r.name, r.purpose
    from (values
      ('counterfoil_worker', 'Counterfoil: claims attempts and executes plays.'),
      ('counterfoil_dispatcher', 'Counterfoil: claims facts and delivers them.'),
      ('counterfoil_gateway', 'Counterfoil: the HTTP service before the functions.'),
      ('counterfoil_operator',
       'Counterfoil: launches, cancels, settings, limits, blocked facts, retention.'),
      ('counterfoil_reader', 'Counterfoil: reads runs, ledgers, the journal, health.')
    ) as r (name, purpose)
    where r.name not in (select e.rolname from pg_catalog.pg_roles as e)
  loop
    begin
      execute pg_catalog.format('create role %I nologin', v_role.name);
      execute pg_catalog.format('comment on role %I is %L', v_role.name, v_role.purpose);
    exception
      -- Another database's installer created it between the look and the statement.
      when duplicate_object or unique_violation then
        null;
    end;
  end loop;
end
$roles$;
