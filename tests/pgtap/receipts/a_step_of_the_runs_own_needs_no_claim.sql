-- record_receipt: claim and completion in one call, under the attempt's lease; recall_receipts: what a run remembers.
begin;
\ir ../setup.psql
\ir setup.psql
select plan(34);

select pg_temp.held_run('r1');
select pg_temp.held_run('r2');

-- One call as the holder of attempt 1 of r1.
create function pg_temp.record(p_key text, p_output jsonb, p_lease_id text default 'l', p_attempt integer default 1)
returns jsonb language sql volatile parallel unsafe as $function$
  select counterfoil.record_receipt('acme', 'r1', p_attempt, p_lease_id, p_key, p_output)
$function$;
create function pg_temp.receipt(p_key text) returns jsonb language sql stable parallel unsafe as $function$
  select to_jsonb(r) from counterfoil.step_receipts as r where r.key = p_key
$function$;

-- A new one.
select is(pg_temp.record('k', '{"n": 1.0}'), '{"status": "completed", "output": {"n": 1.0}}', 'the output as it was kept');
select is(
  pg_temp.receipt('k') - '{created_at,claimed_at,updated_at,settled_at}'::text[],
  '{"org_id": "acme", "key": "k", "status": "completed", "run_id": "r1", "run_attempt": 1, "lease_id": "l", "lease_aware": true,
    "lease_expires_at": null, "claims": 1, "output": {"n": 1.0}, "error": null, "error_payload": null, "failure_kind": null,
    "settled_lease_id": "l", "expires_at": null}',
  'the receipt is as one that was claimed and completed');
select is(pg_temp.record('k', '{"n": 1}'), '{"status": "completed", "output": {"n": 1.0}}', 'a repeat answers the same');
select pg_temp.raises($$ select pg_temp.record('k', '2') $$, 'RL003', 'receipt_settled_otherwise', 'another output under the same lease');
select is(pg_temp.record('null', 'null'), '{"status": "completed", "output": null}', 'nothing is an output too');
select is(pg_temp.record('secret', '{"password": "hunter2"}') -> 'output', '{"password": "[redacted]"}', 'secrets are redacted');

-- Arguments.
select pg_temp.raises($$ select pg_temp.record('', '1') $$, 'RL001', 'p_key[0]', 'an empty key');
select pg_temp.raises($$ select pg_temp.record(repeat('k', 1001), '1') $$, 'RL001', 'p_key[0]', 'a key that is too long');
select pg_temp.raises($$ select pg_temp.record('a', '1', 'l', 0) $$, 'RL001', 'p_attempt', 'no attempt');
select pg_temp.raises($$ select pg_temp.record('a', '1', '') $$, 'RL001', 'p_lease_id', 'no lease');
select pg_temp.raises($$ select counterfoil.record_receipt(null, 'r1', 1, 'l', 'a', '1') $$, 'RL001', 'p_org_id', 'no org');
select pg_temp.raises($$ select counterfoil.record_receipt('acme', '', 1, 'l', 'a', '1') $$, 'RL001', 'p_run_id', 'no run');
select pg_temp.raises($$ select pg_temp.record('a', to_jsonb(repeat('x', 1048577))) $$, 'RL008', 'p_output', 'too much output');
select throws_like(
  $$ select pg_temp.record('a', to_jsonb(repeat('x', 1048577))) $$,
  'The output of step ''a'' has 1048579 bytes; it may have 1048576.', 'and the step and the limit are named');

-- The lease of the attempt is the proof.
select pg_temp.raises($$ select pg_temp.record('a', '1', 'other') $$, 'RL004', 'attempt_lease_not_current', 'another lease');
select pg_temp.raises($$ select pg_temp.record('a', '1', 'l', 2) $$, 'RL004', 'attempt_lease_not_current', 'another attempt');
select pg_temp.raises($$ select counterfoil.record_receipt('acme', 'unknown', 1, 'l', 'a', '1') $$, 'RL004', 'attempt_lease_not_current', 'a run that is not known here');
update counterfoil.attempts set lease_expires_at = now() - interval '1 second' where run_id = 'r1';
select pg_temp.raises($$ select pg_temp.record('a', '1') $$, 'RL004', 'attempt_lease_not_current', 'a lease that has lapsed');
select is(pg_temp.record('k', '{"n": 1}'), '{"status": "completed", "output": {"n": 1.0}}', 'but a repeat is answered');
select pg_temp.raises($$ select pg_temp.record('k', '2') $$, 'RL003', 'receipt_settled_otherwise', 'and so is another output');
update counterfoil.attempts set lease_expires_at = now() + interval '1 hour' where run_id = 'r1';

-- What there is already: as claims and completions have it.
select pg_temp.claim('r1', array['mine', 'theirs', 'repairable', 'terminal', 'skipped'], array['l', 'x', 'x', 'x', 'x']);
select pg_temp.claim('r2', array['other run'], array['y']);
select is(pg_temp.record('mine', '1'), '{"status": "completed", "output": 1}', 'one claimed under the attempt''s lease is completed');
select is((pg_temp.receipt('mine') -> 'claims', pg_temp.record('mine', '1')), ('1'::jsonb, '{"status": "completed", "output": 1}'::jsonb),
  'under that claim, and a repeat answers the same');
select is(pg_temp.record('theirs', '1'), '{"status": "completed", "output": 1}', 'one under a claim that an earlier life of the run left is taken over');
select is(pg_temp.receipt('theirs') -> 'claims', '2', 'with a claim of its own');
select counterfoil.fail_receipts('acme', 'r1', pg_temp.item('repairable', 'x', '{"error": "e", "failureKind": "repairable"}'));
select counterfoil.fail_receipts('acme', 'r1', pg_temp.item('terminal', 'x', '{"error": "e", "failureKind": "terminal"}'));
select counterfoil.skip_receipts('acme', 'r1', pg_temp.item('skipped', 'x', '{"output": 0}'));
select is(pg_temp.record('repairable', '1'), '{"status": "completed", "output": 1}', 'a repairable failure is repaired');
select is(pg_temp.record('terminal', '1'), '{"status": "failed", "error": "e", "failureKind": "terminal"}', 'a terminal one stays');
select is(pg_temp.record('skipped', '1'), '{"status": "skipped", "output": 0}', 'what was skipped stays');
update counterfoil.attempts set attempt = 2, lease_id = 'heir' where run_id = 'r1';
select is(pg_temp.record('k', '2', 'heir', 2), '{"status": "completed", "output": {"n": 1.0}}', 'a later attempt gets what the earlier one kept');
select is((pg_temp.receipt('k') -> 'output', pg_temp.receipt('k') -> 'run_attempt'), ('{"n": 1.0}'::jsonb, '1'::jsonb), 'which does not change');

-- What a run remembers.
delete from counterfoil.step_receipts;
select is(counterfoil.recall_receipts('acme', 'r1', 'p:r1:', 10, 1000), '[]', 'nothing yet');
insert into counterfoil.step_receipts (org_id, key, status, run_id, lease_id, lease_expires_at, output, error, failure_kind, created_at, claimed_at, updated_at, settled_at, expires_at)
select f.org, f.key, f.status, f.run, 'l', case when f.status = 'running' then now() end, f.output, f.error, f.kind, now(), now(), now(),
  case when f.status <> 'running' then now() end, f.expires
from (values
  ('acme', 'p:r1:a', 'completed', 'r1', '1'::jsonb, null, null, null::timestamptz),
  ('acme', 'p:r1:b', 'failed', 'r1', null, 'e', 'terminal', null),
  ('acme', 'p:r1:c', 'skipped', 'r1', '3', null, null, now() + interval '1 hour'),
  ('acme', 'p:r1:d', 'completed', 'r1', '4', null, null, now() - interval '1 second'),
  ('acme', 'p:r1:e', 'failed', 'r1', null, 'e', 'repairable', null),
  ('acme', 'p:r1:f', 'running', 'r1', null, null, null, null),
  ('acme', 'p:r1:x:g', 'completed', 'r1:x', '7', null, null, null),
  ('acme', 'p:r1', 'completed', 'r1', '8', null, null, null),
  ('acme', 'p:r2:a', 'completed', 'r2', '9', null, null, null),
  ('else', 'p:r1:h', 'completed', 'r1', '10', null, null, null)
) as f (org, key, status, run, output, error, kind, expires);
select is(
  (select jsonb_agg(jsonb_build_array(r -> 'key', r -> 'status', coalesce(r -> 'output', r -> 'error'), r ? 'leaseId'))
   from jsonb_array_elements(counterfoil.recall_receipts('acme', 'r1', 'p:r1:', 7, 1000)) as r),
  '[["p:r1:a", "completed", 1, false], ["p:r1:b", "failed", "e", false], ["p:r1:c", "skipped", 3, false]]',
  'what is settled for good, in key order, of this run alone');
select is(counterfoil.recall_receipts('acme', 'r1', 'p:r1:', 6, 1000), null, 'not when there is more than the limit');
select is(counterfoil.recall_receipts('acme', 'r1', 'p:r1:', 10, 20), null, 'nor when it is too large');
select is(
  array[(pg_temp.raised($$ select counterfoil.recall_receipts('acme', 'r1', 'p', 0, 1) $$)).detail,
    (pg_temp.raised($$ select counterfoil.recall_receipts('acme', 'r1', 'p', 1, 0) $$)).detail,
    (pg_temp.raised($$ select counterfoil.recall_receipts('acme', 'r1', '', 1, 1) $$)).detail],
  '{p_limit,p_max_bytes,p_prefix[0]}', 'malformed arguments');

select * from finish();
rollback;
