-- The five roles that may call Counterfoil's functions. They belong to the whole server, cannot
-- log in, own nothing and touch no table; a DBA grants them to logins. Safe to run again, and at
-- the same time from several databases of one server. Needs CREATEROLE.

do $roles$
declare
  v_role text;
begin
  foreach v_role in array array[
    'counterfoil_worker', 'counterfoil_dispatcher', 'counterfoil_gateway',
    'counterfoil_operator', 'counterfoil_reader'
  ]
  loop
    begin
      if not exists (select from pg_catalog.pg_roles as r where r.rolname = v_role) then
        execute pg_catalog.format('create role %I nologin', v_role);
      end if;
    exception
      -- Another database's installer created it between the look and the statement.
      when duplicate_object or unique_violation then
        null;
    end;
  end loop;
end
$roles$;

comment on role counterfoil_worker is 'Counterfoil: claims attempts and executes plays.';
comment on role counterfoil_dispatcher is 'Counterfoil: claims facts and delivers them.';
comment on role counterfoil_gateway is 'Counterfoil: the HTTP service before the functions.';
comment on role counterfoil_operator is
  'Counterfoil: launches, cancels, settings, limits, blocked facts, retention.';
comment on role counterfoil_reader is 'Counterfoil: reads runs, ledgers, the journal, health.';
