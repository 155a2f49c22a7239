begin;
\ir ../setup.psql
\ir setup.psql
select plan(8);

select pg_temp.held_run('r1');
select pg_temp.claim('r1', array['a', 'b', 'c', 'd'], array['a', 'b', 'c', 'd']);
create function pg_temp.complete(variadic p_keys text [])
returns jsonb language sql volatile parallel unsafe as $function$
  select jsonb_build_array(d.status, d.body -> 'code')
  from counterfoil.dispatch_receipt_action('{"orgId": "acme", "playName": "p", "runId": "r1"}', jsonb_build_object(
    'action', 'complete_runtime_step_receipts', 'playName', 'p', 'receipts', (
      select jsonb_agg(jsonb_build_object('runId', 'r1', 'key', k.key, 'leaseId', k.key, 'runAttempt', 1, 'output', 1) order by k.ordinality)
      from unnest(p_keys) with ordinality as k (key, ordinality)))) as d
$function$;

select is(
  (select count(*) from pg_catalog.pg_proc as p where p.pronamespace = 'counterfoil'::regnamespace and p.prosrc ~* 'fault_inject|receipt_faults|runtime_test_fault'),
  0::bigint, 'the shipped functions know of no injected fault');
select is((select count(*) from counterfoil.settings as s where s.name ~ '(^|_)fault'), 0::bigint, 'no setting switches one on');

\ir ../../faults/receipt_faults.sql
insert into counterfoil.receipt_faults values ('acme', 'r1');
select is(pg_temp.complete('b', 'a', 'c'), '[409, "runtime_test_fault"]', 'the answer is a conflict');
select is(
  (select jsonb_object_agg(r.key, array[r.status, r.failure_kind]) from counterfoil.step_receipts as r),
  '{"a": ["completed", null], "b": ["failed", "repairable"], "c": ["completed", null], "d": ["running", null]}',
  'the first became a repairable failure, its siblings completed');
select is(pg_temp.complete('d'), '[200, null]', 'a fault happens once');
select is(pg_temp.claim('r1', array['b'], array['b']), '[["running", true]]', 'the failed one is claimed again');
insert into counterfoil.receipt_faults values ('acme', 'r1');
select is(pg_temp.complete('b'), '[409, "runtime_test_fault"]', 'one receipt alone can be chosen');
select is((select array[r.status, r.failure_kind] from counterfoil.step_receipts as r where r.key = 'b'), array['failed', 'repairable'], 'and fails');

select * from finish();
rollback;
