begin;
\ir ../setup.psql
\ir setup.psql
select plan(14);

select pg_temp.held_run('r1');
select pg_temp.held_run('r2');
select pg_temp.held_run('r1', 1, 'other');

select is(pg_temp.claim('r1', array['k'], array['a']), '[["running", true]]', 'the first claims');
select is(pg_temp.claim('r2', array['k'], array['b']), '[["running", false]]', 'the second waits');
select is(pg_temp.claim('r1', array['k'], array['a']), '[["running", true]]', 'a repeated claim answers as the first did');
select is(pg_temp.claim('r1', array['k'], array['c']), '[["running", false]]', 'another claim of the same run waits too');

select is(
  (select c.receipt - 'leaseExpiresAt' - 'retryAfterMs' - 'updatedAt'
   from counterfoil.claim_receipts('acme', 'r2', 1, array['k'], array['b']) as c),
  '{"key": "k", "status": "running", "runId": "r1", "leaseOwnerAttempt": 1, "claims": 1}',
  'who waits learns who computes, but not the lease id');
select ok(
  (select (c.receipt ->> 'retryAfterMs')::integer between 1 and 1000
     and (c.receipt ->> 'leaseExpiresAt')::timestamptz between now() + interval '50 seconds' and clock_timestamp() + interval '61 seconds'
   from counterfoil.claim_receipts('acme', 'r2', 1, array['k'], array['b']) as c),
  'and when to ask again');
select is(
  (select c.receipt ->> 'leaseId' from counterfoil.claim_receipts('acme', 'r1', 1, array['k'], array['a']) as c), 'a',
  'the holder is told its lease id');

select is(
  (select c.receipt ->> 'status' from counterfoil.complete_receipts('acme', 'r1', pg_temp.item('k', 'a', '{"output": {"n": 1}}')) as c),
  'completed', 'the holder completes');
select is(
  (select jsonb_build_array(c.claimed, c.receipt -> 'output', c.receipt -> 'runId')
   from counterfoil.claim_receipts('acme', 'r2', 1, array['k'], array['b']) as c),
  '[false, {"n": 1}, "r1"]', 'the other gets its result');
select is(pg_temp.claim('r1', array['k'], array['d']), '[["completed", false]]', 'so does the holder, memoised');

select is(
  (select c.claimed from counterfoil.claim_receipts('other', 'r1', 1, array['k']) as c), true,
  'the same key of another org is another receipt');
select is(
  (select c.claimed from counterfoil.claim_receipts('acme', 'elsewhere', null, array['x']) as c), true,
  'a run that this database does not execute may use receipts');
select is(
  (select count(*) from counterfoil.step_receipts as r where r.org_id = 'acme'), 2::bigint, 'one row a key');
select is((select count(*) from counterfoil.claim_receipts('acme', 'r1', 1, '{}')), 0::bigint, 'no keys, no answers');

select * from finish();
rollback;
