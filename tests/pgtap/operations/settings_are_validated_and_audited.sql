begin;
\ir ../setup.psql
select plan(25);

select is(counterfoil.set_setting('prefix_max_facts', '10'), '10', 'a setting takes a value');
select is(counterfoil.setting_integer('prefix_max_facts'), 10::bigint, 'which then applies');
select is(
  (select jsonb_build_array(s.value, s.default_value, s.changed_by = session_user, s.changed_at is not null) from counterfoil.settings_list() as s where s.name = 'prefix_max_facts'),
  '[10, 64, true, true]', 'the list says what applies, what the default is and who changed it');
select is(counterfoil.set_setting('prefix_max_facts', '10'), '10', 'the same again');
select is(counterfoil.set_setting('prefix_max_facts', '11.0'), '11', 'a whole number in any spelling');
select is(counterfoil.set_setting('prefix_max_facts', null), '64', 'null goes back to the default');
select is(counterfoil.set_setting('prefix_max_facts', 'null'), '64', 'JSON null too');
select is(
  (select jsonb_agg(jsonb_build_array(u.action, u.target, u.details -> 'before', u.details -> 'after') order by u.recorded_at desc) from counterfoil.list_audit() as u),
  '[["set_setting", {"setting": "prefix_max_facts"}, 11, null], ["set_setting", {"setting": "prefix_max_facts"}, 10, 11], ["set_setting", {"setting": "prefix_max_facts"}, null, 10]]',
  'each change is in the audit trail, what changes nothing is not');
select is((select distinct u.actor from counterfoil.list_audit() as u), session_user::text, 'under the name of who logged in');

-- Bounds.
select is(counterfoil.set_setting('prefix_max_facts', '1'), '1', 'the smallest');
select is(counterfoil.set_setting('prefix_max_facts', '1000'), '1000', 'the largest');
select pg_temp.raises($$ select counterfoil.set_setting('prefix_max_facts', '0') $$, 'RL001', 'p_value');
select pg_temp.raises($$ select counterfoil.set_setting('prefix_max_facts', '1001') $$, 'RL001', 'p_value');
select pg_temp.raises($$ select counterfoil.set_setting('prefix_max_facts', '1.5') $$, 'RL001', 'p_value');
select pg_temp.raises($$ select counterfoil.set_setting('prefix_max_facts', '1e30') $$, 'RL001', 'p_value');
select pg_temp.raises($$ select counterfoil.set_setting('prefix_max_facts', '"10"') $$, 'RL001', 'p_value');
select pg_temp.raises($$ select counterfoil.set_setting('prefix_max_facts', '[10]') $$, 'RL001', 'p_value');
select pg_temp.raises($$ select counterfoil.set_setting('none', '1') $$, 'RL002', 'setting_not_found');
select pg_temp.raises($$ select counterfoil.set_setting(null, '1') $$, 'RL001', 'p_name');
select is(counterfoil.setting_integer('prefix_max_facts'), 1000::bigint, 'a refused value changes nothing');

-- The list.
select is((select count(*) from counterfoil.settings_list()), (select count(*) from counterfoil.settings), 'the list is whole');
select is((select count(*) from counterfoil.settings_list() as s where s.unit = '' or s.meaning = '' or s.value is null), 0::bigint, 'every setting has a unit, a meaning and a value');

-- Pages of the trail.
select is((select count(*) from counterfoil.list_audit(null, null, null, 2)), 2::bigint, 'a page');
select is(
  (select array_agg(u.audit_id order by u.recorded_at desc, u.audit_id desc) from counterfoil.list_audit() as u),
  (with first as (select * from counterfoil.list_audit(null, null, null, 2)),
    last as (select f.* from first as f order by f.recorded_at, f.audit_id limit 1)
   select array_agg(p.audit_id order by p.recorded_at desc, p.audit_id desc)
   from (select * from first union all select n.* from last as l, counterfoil.list_audit(null, l.recorded_at, l.audit_id) as n) as p),
  'pages leave out nothing and repeat nothing');
select pg_temp.raises($$ select counterfoil.list_audit(p_limit => 0) $$, 'RL001', 'p_limit');

select * from finish();
rollback;
