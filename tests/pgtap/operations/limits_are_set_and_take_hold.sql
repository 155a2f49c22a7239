begin;
\ir ../setup.psql
\ir setup.psql
select plan(25);

select is(pg_temp.launch('r1'), 'admitted', 'a run');
select is(counterfoil.set_admission_limits('acme', 'org', '{"maxQueued": 2}'),
  '{"maxQueued": 2, "maxActive": null, "launchesPerMinute": null, "maxPerConcurrencyKey": null}', 'a limit is set');
select is(pg_temp.launch('r2'), 'admitted', 'the run that was there already counts');
select is((select r.state from pg_temp.raised($$ select pg_temp.launch('r3') $$) as r), 'RL007', 'so a third is over the limit');
select is(counterfoil.health() #> '{admission,orgs,0}',
  '{"orgId": "acme", "queued": 2, "active": 0, "launchesThisMinute": 2, "limits": {"maxQueued": 2, "maxActive": null, "launchesPerMinute": null, "maxPerConcurrencyKey": null}}',
  'health shows its use');
select is(counterfoil.set_admission_limits('acme', 'org', '{"maxActive": 7}') -> 'maxQueued', '2', 'a limit that is not named stays');
select is(counterfoil.set_admission_limits('acme', 'org', '{"maxQueued": null}') -> 'maxQueued', 'null', 'null removes one');
select is(pg_temp.launch('r3'), 'admitted', 'and then there is none');
select is(counterfoil.set_admission_limits('acme', 'org', '{}') -> 'maxActive', '7', 'an empty object only asks');

select is(counterfoil.set_admission_limits(null, 'installation', '{"maxQueued": 3}') -> 'maxQueued', '3', 'a limit for all orgs together');
select is((select r.state from pg_temp.raised($$ select pg_temp.launch('r4') $$) as r), 'RL006', 'over it is a matter of capacity');
select is(counterfoil.health() #> '{admission,installation,queued}', '3', 'health shows its use');
select is(counterfoil.set_admission_limits('', 'default', '{"maxPerConcurrencyKey": 2}') -> 'maxPerConcurrencyKey', '2', 'a limit for orgs without their own');

select is((select array_agg(u.target ->> 'scope' order by u.recorded_at) from counterfoil.list_audit('acme') as u), array['org', 'org', 'org'], 'changes are in the trail of the org');
select is((select array_agg(u.target ->> 'scope' order by u.recorded_at) from counterfoil.list_audit() as u), array['installation', 'default'], 'or of the installation');

select pg_temp.raises($$ select counterfoil.set_admission_limits('acme', 'all', '{}') $$, 'RL001', 'p_scope');
select pg_temp.raises($$ select counterfoil.set_admission_limits('acme', null, '{}') $$, 'RL001', 'p_scope');
select pg_temp.raises($$ select counterfoil.set_admission_limits(null, 'org', '{}') $$, 'RL001', 'p_org_id');
select pg_temp.raises($$ select counterfoil.set_admission_limits('acme', 'default', '{}') $$, 'RL001', 'p_org_id');
select pg_temp.raises($$ select counterfoil.set_admission_limits('acme', 'org', '[]') $$, 'RL001', 'p_limits');
select pg_temp.raises($$ select counterfoil.set_admission_limits('acme', 'org', '{"maxqueued": 1}') $$, 'RL001', 'p_limits.maxqueued');
select pg_temp.raises($$ select counterfoil.set_admission_limits('acme', 'org', '{"maxQueued": -1}') $$, 'RL001', 'p_limits.maxQueued');
select pg_temp.raises($$ select counterfoil.set_admission_limits('acme', 'org', '{"maxActive": "1"}') $$, 'RL001', 'p_limits.maxActive');
select pg_temp.raises($$ select counterfoil.set_admission_limits('acme', 'org', '{"maxPerConcurrencyKey": 0}') $$, 'RL001', 'p_limits.maxPerConcurrencyKey');
select pg_temp.raises($$ select counterfoil.set_admission_limits(null, 'installation', '{"maxPerConcurrencyKey": 1}') $$, 'RL001', 'p_limits.maxPerConcurrencyKey');

select * from finish();
rollback;
