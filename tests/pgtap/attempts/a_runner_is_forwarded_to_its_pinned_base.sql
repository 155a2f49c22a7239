-- A gateway learns where a runner's requests go, and nothing else of the launch.
begin;
\ir ../setup.psql
\ir setup.psql
select plan(7);

select is(
  pg_temp.admit('a', '{"baseUrl": "https://base.example/", "vercelProtectionBypassToken": "bypass"}'), 'admitted', 'a run'
);
select results_eq(
  $$ select r.base_url, r.protection_bypass_token from counterfoil.runner_route('org', 'a') as r $$,
  $$ values ('https://base.example', 'bypass') $$,
  'the base that the launch pinned, and its bypass'
);
select is(
  pg_temp.admit('b', '{"baseUrl": "https://base.example", "runtimeApiBaseUrl": "https://api.example"}'),
  'admitted', 'a run with a runtime API of its own'
);
select results_eq(
  $$ select r.base_url, r.protection_bypass_token from counterfoil.runner_route('org', 'b') as r $$,
  $$ values ('https://api.example', null::text) $$,
  'goes there, without a bypass'
);
select pg_temp.raises($$ select counterfoil.runner_route('other', 'a') $$, 'RL002', 'run_not_found', 'another org has no such run');
select pg_temp.raises($$ select counterfoil.runner_route('', 'a') $$, 'RL001', 'p_org_id', 'an org is needed');
select counterfoil.cancel_run('org', 'a', null);
select pg_temp.raises($$ select counterfoil.runner_route('org', 'a') $$, 'RL005', 'run_ended', 'a run that has ended has no route');

select * from finish();
rollback;
