begin;
\ir ../setup.psql
\ir setup.psql
select plan(15);

select pg_temp.launch('r' || i) from generate_series(1, 5) as i;
update counterfoil.runs set created_at = now() - interval '1 hour' where run_id in ('r1', 'r2');
select is((select array_agg(l.run_id) from counterfoil.list_runs('acme') as l), array['r5', 'r4', 'r3', 'r2', 'r1'], 'the latest come first');
select is((select array_agg(l.run_id) from counterfoil.list_runs('acme', p_limit => 2) as l), array['r5', 'r4'], 'a page');
select is(
  (select array_agg(n.run_id) from (select p.* from counterfoil.list_runs('acme', p_limit => 4) as p order by p.created_at, p.run_id limit 1) as l
   cross join counterfoil.list_runs('acme', null, l.created_at, l.run_id) as n),
  array['r1'], 'the next goes on behind it, though times are equal');
select is((select count(*) from counterfoil.claim_attempts('w', 2, 60, array['p'], 'default')), 2::bigint, 'two begin');
select is((select count(*) from counterfoil.list_runs('acme', 'running')), 2::bigint, 'runs of one status');
select is((select count(*) from counterfoil.list_runs('acme', 'queued')), 3::bigint, 'and of another');
select is((select count(*) from counterfoil.list_runs('other')), 0::bigint, 'of their org alone');
select is((select l.run - 'createdAt' - 'availableAt' from counterfoil.list_runs('acme', 'queued', p_limit => 1) as l),
  '{"orgId": "acme", "runId": "r5", "status": "queued", "playId": "pi", "playName": "p", "releaseLane": "default", "priority": 5, "concurrencyKey": null,
    "rootRunId": "r5", "parentRunId": null, "attempt": 0, "maxAttempts": 3, "startedAt": null, "endedAt": null, "deadlineAt": null, "waitKind": null,
    "waitReason": null, "waitEvent": null, "wakeAt": null, "cancelRequestedAt": null, "cancelReason": null, "facts": 1, "resultSummary": null, "error": null}',
  'what is said of each');
select pg_temp.raises($$ select counterfoil.list_runs('acme', 'odd') $$, 'RL001', 'p_status');
select pg_temp.raises($$ select counterfoil.list_runs('acme', p_limit => 1001) $$, 'RL001', 'p_limit');
select pg_temp.raises($$ select counterfoil.list_runs('') $$, 'RL001', 'p_org_id');

select is(
  (select (counterfoil.get_run('acme', l.run_id) #> '{attempts,0}') - 'claimedAt' - 'heartbeatAt' - 'leaseExpiresAt' from counterfoil.list_runs('acme', 'running', p_limit => 1) as l),
  '{"attempt": 1, "status": "running", "worker": "w", "claims": 1, "endedAt": null, "error": null}', 'one run, with its attempts');
select is(counterfoil.get_run('acme', 'r5') -> 'attempts', '[]', 'which may be none');
select pg_temp.raises($$ select counterfoil.get_run('other', 'r1') $$, 'RL002', 'run_not_found');
select pg_temp.raises($$ select counterfoil.get_run('acme', null) $$, 'RL001', 'p_run_id');

select * from finish();
rollback;
