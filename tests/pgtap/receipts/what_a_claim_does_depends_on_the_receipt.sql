begin;
\ir ../setup.psql
\ir setup.psql
select plan(29);

select pg_temp.held_run('r1');
select pg_temp.held_run('r2');

-- Completed.
select pg_temp.claim('r1', array['done'], array['a']);
select counterfoil.complete_receipts('acme', 'r1', pg_temp.item('done', 'a', '{"output": 1}'));
select is(pg_temp.claim('r2', array['done'], array['b'], '{"reclaimRunning": true, "forceFailedRefresh": true}'),
  '[["completed", false]]', 'a result stays without forceRefresh');
select is(pg_temp.claim('r1', array['done'], array['a'], '{"forceRefresh": true}'),
  '[["completed", false]]', 'a repeat of the claim that led to the result does not throw it away');
select is(pg_temp.claim('r2', array['done'], array['b'], '{"forceRefresh": true}'), '[["running", true]]', 'forceRefresh computes anew');
select is((select array[r.output is null, r.claims = 2, r.settled_at is null] from counterfoil.step_receipts as r where r.key = 'done'),
  array[true, true, true], 'and forgets the result');

-- Completed with a time to live.
select pg_temp.claim('r1', array['ttl'], array['a']);
select is(
  (select (c.receipt ->> 'expiresAt')::timestamptz - (c.receipt ->> 'settledAt')::timestamptz
   from counterfoil.complete_receipts('acme', 'r1', pg_temp.item('ttl', 'a', '{"output": 1, "ttlSeconds": 60}')) as c),
  interval '60 seconds', 'a result can be given a time');
select is(pg_temp.claim('r2', array['ttl'], array['b']), '[["completed", false]]', 'it counts until then');
update counterfoil.step_receipts set expires_at = now() - interval '1 second' where key = 'ttl';
select is((select g.receipt from counterfoil.get_receipts('acme', array['ttl']) as g), null, 'past it there is none to get');
select is(pg_temp.claim('r2', array['ttl'], array['b']), '[["running", true]]', 'and it is claimed');
select is((select r.expires_at from counterfoil.step_receipts as r where r.key = 'ttl'), null, 'and has no time any more');

-- Skipped.
select pg_temp.claim('r1', array['skip'], array['a']);
select is(
  (select jsonb_build_array(c.receipt -> 'status', c.receipt -> 'output')
   from counterfoil.skip_receipts('acme', 'r1', pg_temp.item('skip', 'a', '{"output": "why"}')) as c),
  '["skipped", "why"]', 'a step can be skipped');
select is(pg_temp.claim('r2', array['skip'], array['b']), '[["skipped", false]]', 'that is memoised');
select is(pg_temp.claim('r2', array['skip'], array['b'], '{"forceRefresh": true}'), '[["running", true]]', 'unless refreshed');

-- Failed for good.
select pg_temp.claim('r1', array['dead'], array['a']);
select is(
  (select c.receipt - 'settledAt' - 'updatedAt' from counterfoil.fail_receipts('acme', 'r1', pg_temp.item('dead', 'a', '{"error": "boom", "errorPayload": {"code": 7}}')) as c),
  '{"key": "dead", "status": "failed", "runId": "r1", "leaseOwnerAttempt": 1, "claims": 1, "leaseId": "a",
    "error": "boom", "errorPayload": {"code": 7}, "failureKind": "terminal"}',
  'a failure is terminal unless it says otherwise');
select is(pg_temp.claim('r2', array['dead'], array['b'], '{"forceRefresh": true, "reclaimRunning": true}'),
  '[["failed", false]]', 'a terminal failure stays without forceFailedRefresh');
select is(pg_temp.claim('r1', array['dead'], array['a'], '{"forceFailedRefresh": true}'), '[["failed", false]]', 'a repeat of the claim does not forget it');
select is(pg_temp.claim('r2', array['dead'], array['b'], '{"forceFailedRefresh": true}'), '[["running", true]]', 'with it, it is computed anew');

-- Failed repairably.
select pg_temp.claim('r1', array['sick'], array['a']);
select counterfoil.fail_receipts('acme', 'r1', pg_temp.item('sick', 'a', '{"error": "boom", "failureKind": "repairable"}'));
select is(pg_temp.claim('r2', array['sick'], array['b']), '[["running", true]]', 'a repairable failure is claimed by the next');
select is((select array[r.error, r.failure_kind] from counterfoil.step_receipts as r where r.key = 'sick'),
  array[null, null], 'and forgotten');

-- Running.
select pg_temp.claim('r1', array['run'], array['a']);
select is(pg_temp.claim('r2', array['run'], array['b'], '{"forceRefresh": true, "forceFailedRefresh": true, "reclaimOwnRun": true}'),
  '[["running", false]]', 'a live lease is waited out');
select pg_temp.lapse('run');
select is(pg_temp.claim('r2', array['run'], array['b']), '[["running", true]]', 'a lapsed one is taken');
select is(pg_temp.claim('r1', array['run'], array['c'], '{"reclaimRunning": true}'), '[["running", true]]', 'reclaimRunning takes a live one');
select pg_temp.raises($$ select counterfoil.complete_receipts('acme', 'r2', pg_temp.item('run', 'b')) $$,
  'RL004', 'receipt_lease_not_current', 'and the former holder writes nothing');
update counterfoil.attempts set status = 'lost', ended_at = now(), lease_expires_at = null where run_id = 'r1';
insert into counterfoil.attempts (
  org_id, run_id, attempt, status, worker, release_lane, lease_id, lease_expires_at, claimed_at, heartbeat_at
) values ('acme', 'r1', 2, 'running', 'w', 'default', 'l', now() + interval '1 hour', now(), now());
select is(
  (select c.claimed from counterfoil.claim_receipts('acme', 'r1', 2, array['run'], array['d'], '{"reclaimOwnRun": false}') as c), false,
  'a later attempt of the run waits as well');
select is(
  (select c.claimed from counterfoil.claim_receipts('acme', 'r1', 2, array['run'], array['d'], '{"reclaimOwnRun": true}') as c), true,
  'unless it says that it succeeds the earlier one');
select is(
  (select c.claimed from counterfoil.claim_receipts('acme', 'r1', 2, array['run'], array['x'], '{"reclaimOwnRun": true}') as c), false,
  'the same attempt waits for its own other lease');
select pg_temp.held_run('r3', 3);
select is(
  (select c.claimed from counterfoil.claim_receipts('acme', 'r3', 3, array['run'], array['x'], '{"reclaimOwnRun": true}') as c), false,
  'a later attempt of another run waits too');

-- Queued.
select counterfoil.mark_receipts_queued('acme', 'r1', '[{"key": "run", "leaseId": "d", "runAttempt": 2}]');
select is(pg_temp.claim('r2', array['run'], array['e']), '[["running", true]]', 'a queued one is open to everybody');

select is(
  (select (c.receipt ->> 'leaseExpiresAt')::timestamptz < clock_timestamp() + interval '5.5 seconds'
   from counterfoil.claim_receipts('acme', 'r2', 1, array['short'], array['x'], '{"leaseSeconds": 1}') as c),
  true, 'leases are clamped to 5 seconds at least');
select is(
  (select (c.receipt ->> 'leaseExpiresAt')::timestamptz between now() + interval '299 seconds' and clock_timestamp() + interval '301 seconds'
   from counterfoil.claim_receipts('acme', 'r2', 1, array['long'], array['x'], '{"leaseSeconds": 99999999999.5}') as c),
  true, 'and to 300 at most');

select * from finish();
rollback;
