begin;
\ir ../setup.psql
\ir setup.psql
select plan(19);

select pg_temp.held_run('r1');
select pg_temp.held_run('r2');

select is(pg_temp.claim('r1', array['c', 'a', 'b', 'a'], array['1', '2', '3', '4']),
  '[["running", true], ["running", true], ["running", true], ["running", false]]',
  'answers come in the order asked, and a key given twice is claimed once');
select is((select array_agg(r.lease_id order by r.key) from counterfoil.step_receipts as r), array['2', '3', '1'],
  'each under the lease id that was given with it first');
select is((select array_agg(c.key order by c.ordinal) from counterfoil.claim_receipts('acme', 'r1', 1, array['c', 'a', 'b', 'a']) as c),
  array['c', 'a', 'b', 'a'], 'keys come in the order asked');

select is(
  (select jsonb_agg(c.receipt -> 'output' order by c.ordinal)
   from counterfoil.complete_receipts('acme', 'r1',
     pg_temp.item('c', '1', '{"output": 3}') || pg_temp.item('a', '2', '{"output": 1}') || pg_temp.item('a', '2', '{"output": 1}'), true) as c),
  '[3, 1, 1]', 'so do completions');
select pg_temp.claim('r1', array['d', 'e'], array['d', 'e']);
select pg_temp.raises(
  $$ select counterfoil.complete_receipts('acme', 'r1', pg_temp.item('d', 'd', '{"output": 1}') || pg_temp.item('d', 'd', '{"output": 2}')) $$,
  'RL003', 'receipt_settled_otherwise', 'a key cannot be completed twice with different outputs');
select pg_temp.raises(
  $$ select counterfoil.complete_receipts('acme', 'r1', pg_temp.item('d', 'd', '{"output": 1}') || pg_temp.item('e', 'wrong', '{"output": 2}')) $$,
  'RL004', 'receipt_lease_not_current', 'one lost lease refuses the call');
select is((select r.status from counterfoil.step_receipts as r where r.key = 'd'), 'running', 'and nothing of it is written');

-- Heartbeats: what is held is renewed, whatever became of the others.
select pg_temp.lapse('e');
update counterfoil.step_receipts set lease_expires_at = now() + interval '1 second' where key = 'd';
select is(
  (select jsonb_agg(jsonb_build_array(h.key, h.outcome, h.receipt ->> 'status') order by h.ordinal)
   from counterfoil.heartbeat_receipts('acme', 'r1',
     pg_temp.item('e', 'e') || pg_temp.item('d', 'd') || pg_temp.item('a', '2') || pg_temp.item('none', 'x') || pg_temp.item('b', 'x'), 100) as h),
  '[["e", "lost", null], ["d", "ok", "running"], ["a", "lost", null], ["none", "lost", null], ["b", "lost", null]]',
  'each heartbeat has its own answer');
select ok((select r.lease_expires_at between now() + interval '99 seconds' and clock_timestamp() + interval '100 seconds'
  from counterfoil.step_receipts as r where r.key = 'd'), 'the lease held was renewed');
select counterfoil.heartbeat_receipts('acme', 'r1', pg_temp.item('d', 'd'), 5);
select ok((select r.lease_expires_at > now() + interval '99 seconds' from counterfoil.step_receipts as r where r.key = 'd'),
  'a heartbeat never shortens a lease');
select counterfoil.mark_receipts_running('acme', 'r1', pg_temp.item('d', 'd'), 5);
select ok((select r.lease_expires_at > now() + interval '99 seconds' from counterfoil.step_receipts as r where r.key = 'd'),
  'nor does marking it running');
select ok((select r.lease_expires_at < now() from counterfoil.step_receipts as r where r.key = 'e'), 'the lapsed one was not');

update counterfoil.step_receipts set expires_at = now() - interval '1 second' where key = 'a';
select is((select array_agg(g.receipt ->> 'status' order by g.ordinal) from counterfoil.get_receipts('acme', array['a', 'c', 'none']) as g),
  array[null, 'completed', null], 'of many that are read, one past its time is absent');

-- Receipts claimed without lease ids.
select is((select count(distinct c.receipt ->> 'leaseId') from counterfoil.claim_receipts('acme', 'r2', 1, array['x', 'y', 'z']) as c),
  3::bigint, 'the database makes lease ids');
select is(
  (select c.receipt ->> 'status' from counterfoil.complete_receipts('acme', 'r2', '[{"key": "x", "runAttempt": 1, "output": 1}]') as c),
  'completed', 'then run and attempt suffice');
select pg_temp.raises($$ select counterfoil.complete_receipts('acme', 'r1', '[{"key": "y", "runAttempt": 1, "output": 1}]') $$,
  'RL004', 'receipt_lease_not_current', 'but not another run');
select is(
  (select c.receipt ->> 'status' from counterfoil.complete_receipts('acme', 'r2', '[{"key": "x", "runAttempt": 1, "output": 1}]') as c),
  'completed', 'a repeat answers the same');
select is(pg_temp.claim('r2', array['m', 'n'], array['m', null]), '[["running", true], ["running", true]]', 'some with, some without');
select pg_temp.raises($$ select counterfoil.complete_receipts('acme', 'r2', '[{"key": "n", "runAttempt": 1}, {"key": "m", "runAttempt": 1}]') $$,
  'RL004', 'receipt_lease_not_current', 'what was claimed with a lease id must be written with it');

select * from finish();
rollback;
