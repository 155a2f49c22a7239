begin;
\ir ../setup.psql
\ir setup.psql
select plan(53);

select pg_temp.held_run('r1');

-- The answer's status, code (or its body, when all is well) and detail; a refusal without a text or a hint is no answer.
create function pg_temp.ask(p_body text, p_scope jsonb default '{"orgId": "acme", "playName": "p", "runId": "r1"}')
returns jsonb language sql volatile parallel unsafe as $function$
  select jsonb_build_array(d.status, coalesce(d.body -> 'code', d.body), d.body -> 'detail')
  from counterfoil.dispatch_receipt_action(p_scope, p_body::jsonb) as d
  where d.status = 200 or (d.body ->> 'error' <> '' and d.body ->> 'hint' <> '')
$function$;

select is(pg_temp.ask(null), '[400, "invalid_argument", "body"]');
select is(pg_temp.ask(b.body), '[400, "invalid_argument", "body"]', b.body) from (values ('null'), ('7'), ('true')) as b (body);
select is(pg_temp.ask(b.body), '[403, "scope_mismatch", "playName"]', b.body || ' is a body that names no play')
from (values ('[]'), ('["playName", "p"]'), ('[{"playName": "p"}]')) as b (body);
select is(pg_temp.ask('[]', '{}'), '[403, "scope_incomplete", "scope"]');
select is(pg_temp.ask('"x"'), '[400, "invalid_argument", "body"]');
select is(pg_temp.ask('{"action": "x", "playName": "p"}', '{"orgId": "acme", "playName": "p"}'), '[403, "scope_incomplete", "scope"]', 'scope comes before the action');
select is(pg_temp.ask('{"playName": "p"}', '{"orgId": "", "playName": "p", "runId": "r1"}'), '[403, "scope_incomplete", "scope"]');
select is(pg_temp.ask('{"playName": "p"}', '{"orgId": "acme", "runId": "r1"}'), '[403, "scope_incomplete", "scope"]');
select is(pg_temp.ask('{"playName": "p"}', null), '[403, "scope_incomplete", "scope"]');
select is(pg_temp.ask('{"action": "get_runtime_step_receipt", "key": "k"}'), '[403, "scope_mismatch", "playName"]', 'the play must be named');
select is(pg_temp.ask('{"action": "get_runtime_step_receipt", "key": "k", "playName": "q"}'), '[403, "scope_mismatch", "playName"]');
select is(pg_temp.ask('{"action": "get_runtime_step_receipt", "key": "k", "playName": "p", "runId": "r2"}'), '[403, "scope_mismatch", "runId"]');
select is(pg_temp.ask('{"action": "get_runtime_step_receipt", "key": "k", "playName": "p", "runId": 1}'), '[403, "scope_mismatch", "runId"]');
select is(pg_temp.ask('{"action": "get_runtime_step_receipt", "key": "k", "playName": "p", "runId": "r1"}'), '[200, null, null]', 'the run may be named');
select is(pg_temp.ask('{"action": "get_runtime_step_receipt", "key": "k", "playName": "p", "runId": ""}'), '[200, null, null]', 'or left out');
select is(pg_temp.ask(format('{"action": "get_runtime_step_receipt", "key": "k", "playName": "p", "runId": %s}', v.run_id)), v.answer::jsonb, v.run_id)
from (values
  ('null', '[200, null, null]'), ('0', '[200, null, null]'), ('-0.0', '[200, null, null]'), ('false', '[200, null, null]'),
  ('true', '[403, "scope_mismatch", "runId"]'), ('"0"', '[403, "scope_mismatch", "runId"]'), ('" "', '[403, "scope_mismatch", "runId"]'),
  ('[]', '[403, "scope_mismatch", "runId"]'), ('{}', '[403, "scope_mismatch", "runId"]')) as v (run_id, answer);

select is(
  (select jsonb_build_array(d.status, d.body - 'error') from counterfoil.dispatch_receipt_action(
    '{"orgId": "acme", "playName": "p", "runId": "r1"}', '{"action": "drop", "playName": "p"}') as d),
  '[400, {"code": "unsupported_action", "retryable": false, "hint": "Give one of the fourteen actions in /openapi.json.", "detail": "action", "action": "drop", "playName": "p"}]',
  'an unknown action is named');
select is(pg_temp.ask('{"playName": "p"}'), '[400, "unsupported_action", "action"]');
select is(
  (select length(d.body ->> 'action') from counterfoil.dispatch_receipt_action(
    '{"orgId": "acme", "playName": "p", "runId": "r1"}', jsonb_build_object('action', repeat('x', 5000), 'playName', 'p')) as d),
  200, 'but no more of it than a name may have');

select is(pg_temp.ask('{"action": "get_runtime_step_receipt", "playName": "p"}'), '[400, "invalid_argument", "key"]');
select is(pg_temp.ask('{"action": "claim_runtime_step_receipt", "playName": "p", "key": " \t"}'), '[400, "invalid_argument", "key"]');
select is(pg_temp.ask('{"action": "complete_runtime_step_receipt", "playName": "p", "key": 7}'), '[400, "invalid_argument", "key"]');
select is(pg_temp.ask('{"action": "get_runtime_step_receipts", "playName": "p"}'), '[400, "invalid_argument", "keys"]');
select is(pg_temp.ask('{"action": "claim_runtime_step_receipts", "playName": "p", "keys": "k"}'), '[400, "invalid_argument", "keys"]');
select is(pg_temp.ask('{"action": "heartbeat_runtime_step_receipts", "playName": "p", "keys": ["k", ""]}'), '[400, "invalid_argument", "keys[1]"]');
select is(pg_temp.ask('{"action": "get_runtime_step_receipts", "playName": "p", "keys": [null]}'), '[400, "invalid_argument", "keys[0]"]');

-- Batches: every item is of the token's run.
select is(pg_temp.ask(format('{"action": %s, "playName": "p"}', to_jsonb(a.action))), '[400, "invalid_argument", "receipts"]', a.action)
from (values ('mark_runtime_step_receipts_running'), ('mark_runtime_step_receipts_queued'),
  ('complete_runtime_step_receipts'), ('fail_runtime_step_receipts')) as a (action);
select is(
  pg_temp.ask(format('{"action": %s, "playName": "p", "receipts": [{"key": "k", "runId": "r1"}, {"key": "k", "runId": "r2"}]}', to_jsonb(a.action))),
  '[403, "scope_mismatch", "receipts[1].runId"]', a.action)
from (values ('mark_runtime_step_receipts_running'), ('mark_runtime_step_receipts_queued'),
  ('complete_runtime_step_receipts'), ('fail_runtime_step_receipts')) as a (action);
select is(pg_temp.ask('{"action": "complete_runtime_step_receipts", "playName": "p", "receipts": [{"key": "k"}]}'), '[403, "scope_mismatch", "receipts[0].runId"]');
select is(pg_temp.ask('{"action": "fail_runtime_step_receipts", "playName": "p", "receipts": [null]}'), '[403, "scope_mismatch", "receipts[0].runId"]');
select is(pg_temp.ask('{"action": "complete_runtime_step_receipts", "playName": "p", "receipts": [{"key": " ", "runId": "r1"}]}'), '[400, "invalid_argument", "receipts[0].key"]');
select is(pg_temp.ask('{"action": "complete_runtime_step_receipts", "playName": "p", "receipts": [{"runId": "r1"}, {"key": "k", "runId": 0}]}'), '[403, "scope_mismatch", "receipts[1].runId"]', 'the run of every item comes before any key');
select is(pg_temp.ask('{"action": "observe_docflow_node", "playName": "p", "nodeId": " ", "status": "started"}'), '[400, "invalid_argument", "nodeId"]');
select is(pg_temp.ask('{"action": "observe_docflow_node", "playName": "p", "nodeId": "n", "status": "done"}'), '[400, "invalid_argument", "status"]');

select is((select count(*) from counterfoil.step_receipts), 0::bigint, 'nothing was written');

select * from finish();
rollback;
