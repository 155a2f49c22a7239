begin;
\ir ../setup.psql
\ir setup.psql
select plan(17);

select pg_temp.held_run('r1');
select pg_temp.held_run('r2');

-- Completion.
select pg_temp.claim('r1', array['k'], array['a']);
create temporary table first_answer on commit drop as
select c.receipt from counterfoil.complete_receipts('acme', 'r1', pg_temp.item('k', 'a', '{"output": {"n": 1.0}}')) as c;
select is(
  (select c.receipt from counterfoil.complete_receipts('acme', 'r1', pg_temp.item('k', 'a', '{"output": {"n": 1}}')) as c),
  (select f.receipt from first_answer as f), 'a completion repeated answers the same');
select pg_temp.raises($$ select counterfoil.complete_receipts('acme', 'r1', pg_temp.item('k', 'a', '{"output": {"n": 2}}')) $$,
  'RL003', 'receipt_settled_otherwise', 'other output under the same lease');
select pg_temp.raises($$ select counterfoil.fail_receipts('acme', 'r1', pg_temp.item('k', 'a', '{"error": "x"}')) $$,
  'RL003', 'receipt_settled_otherwise', 'a failure after the completion');
select pg_temp.raises($$ select counterfoil.skip_receipts('acme', 'r1', pg_temp.item('k', 'a', '{"output": {"n": 1}}')) $$,
  'RL003', 'receipt_settled_otherwise', 'a skip after the completion');
select pg_temp.raises($$ select counterfoil.release_receipts('acme', 'r1', pg_temp.item('k', 'a')) $$,
  'RL004', 'receipt_lease_not_current', 'a release after the completion');
update counterfoil.attempts set status = 'completed', ended_at = now(), lease_expires_at = null where run_id = 'r1';
select is(
  (select c.receipt from counterfoil.complete_receipts('acme', 'r1', pg_temp.item('k', 'a', '{"output": {"n": 1}}')) as c),
  (select f.receipt from first_answer as f), 'also after the attempt has ended');
select is((select array[r.status, r.output::text] from counterfoil.step_receipts as r where r.key = 'k'),
  array['completed', '{"n": 1.0}'], 'the result is what it was');
select pg_temp.claim('r2', array['k'], array['b'], '{"forceRefresh": true}');
select pg_temp.raises($$ select counterfoil.complete_receipts('acme', 'r1', pg_temp.item('k', 'a', '{"output": {"n": 1}}')) $$,
  'RL004', 'receipt_lease_not_current', 'but not once somebody computes it anew');

-- Failure, release, queueing.
select pg_temp.claim('r2', array['f', 'g', 'h'], array['f', 'g', 'h']);
select counterfoil.fail_receipts('acme', 'r2', pg_temp.item('f', 'f', '{"error": "x", "errorPayload": {"a": 1}, "failureKind": "repairable"}'));
select is(
  (select c.receipt ->> 'failureKind' from counterfoil.fail_receipts('acme', 'r2', pg_temp.item('f', 'f', '{"error": "x", "errorPayload": {"a": 1}, "failureKind": "repairable"}')) as c),
  'repairable', 'a failure repeated answers the same');
select pg_temp.raises($$ select counterfoil.fail_receipts('acme', 'r2', pg_temp.item('f', 'f', '{"error": "y", "errorPayload": {"a": 1}, "failureKind": "repairable"}')) $$,
  'RL003', 'receipt_settled_otherwise', 'another failure under the same lease');
select is((select c.receipt - 'updatedAt' from counterfoil.release_receipts('acme', 'r2', pg_temp.item('g', 'g')) as c),
  '{"key": "g", "status": "queued", "runId": "r2", "leaseOwnerAttempt": 1, "claims": 1}', 'a release tells of no lease any more');
select is((select c.receipt ->> 'status' from counterfoil.release_receipts('acme', 'r2', pg_temp.item('g', 'g')) as c),
  'queued', 'a release repeated answers the same');
select pg_temp.raises($$ select counterfoil.mark_receipts_running('acme', 'r2', pg_temp.item('g', 'g')) $$,
  'RL004', 'receipt_lease_not_current', 'a released receipt cannot be taken up under its old lease');
select counterfoil.mark_receipts_queued('acme', 'r2', pg_temp.item('h', 'h'));
select is((select c.receipt ->> 'status' from counterfoil.mark_receipts_queued('acme', 'r2', pg_temp.item('h', 'h')) as c),
  'queued', 'queueing repeated answers the same');
select pg_temp.raises($$ select counterfoil.complete_receipts('acme', 'r2', pg_temp.item('h', 'h')) $$,
  'RL004', 'receipt_lease_not_current', 'a queued receipt is not completed');
select is((select c.receipt ->> 'status' from counterfoil.mark_receipts_running('acme', 'r2', pg_temp.item('h', 'h')) as c),
  'running', 'its holder takes it up again');
select is((select c.receipt ->> 'status' from counterfoil.mark_receipts_running('acme', 'r2', pg_temp.item('h', 'h')) as c),
  'running', 'and again');

select * from finish();
rollback;
