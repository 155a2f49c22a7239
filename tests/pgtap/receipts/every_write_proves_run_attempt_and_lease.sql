begin;
\ir ../setup.psql
\ir setup.psql
select plan(56);

select pg_temp.held_run('r1');
select pg_temp.held_run('r2');
select pg_temp.claim('r1', array['k'], array['a']);

-- Each function that writes, with %s for the items.
create temporary table writers (name text, call text) on commit drop;
insert into writers values
  ('complete', $$ select counterfoil.complete_receipts('acme', %L, %L) $$),
  ('fail', $$ select counterfoil.fail_receipts('acme', %L, %L) $$),
  ('skip', $$ select counterfoil.skip_receipts('acme', %L, %L) $$),
  ('release', $$ select counterfoil.release_receipts('acme', %L, %L) $$),
  ('mark queued', $$ select counterfoil.mark_receipts_queued('acme', %L, %L) $$),
  ('mark running', $$ select counterfoil.mark_receipts_running('acme', %L, %L) $$);

select pg_temp.raises(format(w.call, 'r1', pg_temp.item('none', 'a')), 'RL002', 'receipt_not_found', w.name || ': no such receipt')
from writers as w;
select pg_temp.raises(format(w.call, 'r1', pg_temp.item('k', 'b')), 'RL004', 'receipt_lease_not_current', w.name || ': another lease')
from writers as w;
select pg_temp.raises(format(w.call, 'r1', '[{"key": "k", "runAttempt": 1}]'), 'RL004', 'receipt_lease_not_current', w.name || ': no lease id')
from writers as w;
select pg_temp.raises(format(w.call, 'r2', pg_temp.item('k', 'a')), 'RL004', 'receipt_lease_not_current', w.name || ': another run')
from writers as w;
select pg_temp.raises(format(w.call, 'r1', pg_temp.item('k', 'a', '{"runAttempt": 2}')), 'RL004', 'receipt_lease_not_current', w.name || ': another attempt')
from writers as w;

update counterfoil.attempts set lease_expires_at = now() - interval '1 second' where run_id = 'r1';
select pg_temp.raises(format(w.call, 'r1', pg_temp.item('k', 'a')), 'RL004', 'attempt_lease_not_current', w.name || ': the attempt has lost its run')
from writers as w;
select pg_temp.raises($$ select counterfoil.heartbeat_receipts('acme', 'r1', pg_temp.item('k', 'a')) $$,
  'RL004', 'attempt_lease_not_current', 'heartbeat: the attempt has lost its run');
select pg_temp.raises($$ select pg_temp.claim('r1', array['new'], array['a']) $$,
  'RL004', 'attempt_lease_not_current', 'claim: the attempt has lost its run');
select pg_temp.raises($$ select counterfoil.claim_receipts('acme', 'r1', null, array['new']) $$,
  'RL004', 'attempt_lease_not_current', 'claim: the attempt of a run that is executed here must be named');
update counterfoil.attempts set lease_expires_at = now() + interval '1 minute' where run_id = 'r1';

select pg_temp.lapse('k');
select is(
  (select array_agg(r.state || ' ' || r.detail) from writers as w cross join pg_temp.raised(format(w.call, 'r1', pg_temp.item('k', 'a'))) as r),
  array_fill('RL004 receipt_lease_not_current'::text, array[6]), 'nobody writes under a lapsed lease');
select is((select r.status from counterfoil.step_receipts as r where r.key = 'k'), 'running', 'nothing was written');

-- Whoever waits for an event has nothing to write.
select pg_temp.claim('r1', array['k'], array['a']);
update counterfoil.attempts set status = 'waiting', lease_expires_at = null where run_id = 'r1';
update counterfoil.runs set status = 'waiting', wait_kind = 'public', wait_id = 'w', waiting_since = now() where run_id = 'r1';
select pg_temp.raises(format(w.call, 'r1', pg_temp.item('k', 'a')), 'RL004', 'attempt_lease_not_current', w.name || ': the run waits')
from writers as w;
select pg_temp.raises($$ select counterfoil.heartbeat_receipts('acme', 'r1', pg_temp.item('k', 'a')) $$,
  'RL004', 'attempt_lease_not_current', 'heartbeat: the run waits');

-- A park behind a detached runner leaves the writing to the runner, until it has said how it ended.
update counterfoil.runs set wait_kind = 'detached_runner', wait_id = null where run_id = 'r1';
select pg_temp.claim('r1', array['k3'], array['a']);
select is((select c.receipt ->> 'status' from counterfoil.complete_receipts('acme', 'r1', pg_temp.item('k', 'a')) as c),
  'completed', 'a detached runner writes for the attempt that is parked behind it');
update counterfoil.attempts set runner_terminal_at = now(), runner_terminal_status = 'completed', runner_terminal = '{}'
where run_id = 'r1';
select pg_temp.raises(format(w.call, 'r1', pg_temp.item('k3', 'a')), 'RL004', 'attempt_lease_not_current', w.name || ': the runner has ended')
from writers as w;
select pg_temp.raises($$ select counterfoil.heartbeat_receipts('acme', 'r1', pg_temp.item('k3', 'a')) $$,
  'RL004', 'attempt_lease_not_current', 'heartbeat: the runner has ended');

select * from finish();
rollback;
