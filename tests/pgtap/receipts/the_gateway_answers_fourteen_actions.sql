begin;
\ir ../setup.psql
\ir setup.psql
select plan(41);

select pg_temp.held_run('r1');

create function pg_temp.ask(p_action text, p_body jsonb, p_wire_format integer default 3)
returns jsonb language sql volatile parallel unsafe as $function$
  select case d.status when 200 then d.body else jsonb_build_array(d.status, d.body) end
  from counterfoil.dispatch_receipt_action(
    '{"orgId": "acme", "playName": "p", "runId": "r1"}',
    jsonb_build_object('action', p_action, 'playName', 'p', 'runAttempt', 1) || p_body, p_wire_format) as d
$function$;
create function pg_temp.short(p_receipt jsonb) returns jsonb language sql immutable parallel safe as $function$
  select jsonb_strip_nulls(jsonb_build_array(
    p_receipt -> 'key', p_receipt -> 'status', p_receipt -> 'claimed', p_receipt -> 'output', p_receipt -> 'failureKind', p_receipt -> 'error'))
$function$;

select is(pg_temp.ask('get_runtime_step_receipt', '{"key": "a"}'), 'null', 'get one: there is none');
select is(pg_temp.ask('get_runtime_step_receipts', '{"keys": ["a", "b"]}'), '[null, null]', 'get many: there are none');
select is(pg_temp.ask('get_runtime_step_receipts', '{"keys": []}'), '[]', 'get many: of nothing');
select is(pg_temp.short(pg_temp.ask('claim_runtime_step_receipt', '{"key": " a ", "leaseId": "la", "leaseAware": true}')),
  '["a", "running", true, null, null, null]', 'claim one; keys are trimmed');
select is((select jsonb_agg(pg_temp.short(e.value)) from jsonb_array_elements(
    pg_temp.ask('claim_runtime_step_receipts', '{"keys": ["b", "a", "c"], "leaseIds": ["lb", "x", "lc"], "leaseAware": true}')) as e),
  '[["b", "running", true, null, null, null], ["a", "running", false, null, null, null], ["c", "running", true, null, null, null]]', 'claim many');
select is(pg_temp.ask('get_runtime_step_receipt', '{"key": "a"}') ->> 'status', 'running', 'get one');
select is(pg_temp.ask('get_runtime_step_receipt', '{"key": "a"}') ? 'leaseId', false, 'a read tells no lease id');
select is(pg_temp.short(pg_temp.ask('complete_runtime_step_receipt', '{"key": "a", "leaseId": "la", "output": {"x": 1}}')),
  '["a", "completed", null, null, null, null]', 'complete one; format 3 does not return the output');
select is(pg_temp.short(pg_temp.ask('complete_runtime_step_receipt', '{"key": "a", "leaseId": "la", "output": {"x": 1}}', 2)),
  '["a", "completed", null, {"x": 1}, null, null]', 'format 2 does');
select is(pg_temp.short(pg_temp.ask('claim_runtime_step_receipt', '{"key": "a", "leaseId": "other"}')),
  '["a", "completed", false, {"x": 1}, null, null]', 'a claim answers what is memoised');
select is((select jsonb_agg(pg_temp.short(e.value)) from jsonb_array_elements(pg_temp.ask('complete_runtime_step_receipts',
    '{"receipts": [{"runId": "r1", "key": "c", "leaseId": "lc", "runAttempt": 1}, {"runId": "r1", "key": "b", "leaseId": "lb", "runAttempt": 1, "output": 2}]}', 1)) as e),
  '[["c", "completed", null, null, null, null], ["b", "completed", null, 2, null, null]]', 'complete many');
select is(pg_temp.short(pg_temp.ask('claim_runtime_step_receipt', '{"key": "a", "leaseId": "new", "forceRefresh": "true"}')) -> 1,
  '"completed"', 'an option is on only where it is true');
select is(pg_temp.short(pg_temp.ask('claim_runtime_step_receipt', '{"key": "a", "leaseId": "new", "forceRefresh": true}')) -> 1,
  '"running"', 'forceRefresh');
select is(pg_temp.short(pg_temp.ask('fail_runtime_step_receipt', '{"key": "a", "leaseId": "new", "error": "token=abcdef12345", "failureKind": "repairable", "errorPayload": 7}')),
  '["a", "failed", null, null, "repairable", "token=[redacted]"]', 'fail one; what is no payload falls away');
select pg_temp.ask('claim_runtime_step_receipts', '{"keys": ["a", "d"], "leaseIds": ["same", "same"]}');
select is((select jsonb_agg(pg_temp.short(e.value) || jsonb_build_array(e.value -> 'errorPayload')) from jsonb_array_elements(pg_temp.ask('fail_runtime_step_receipts',
    '{"receipts": [{"runId": "r1", "key": "d", "leaseId": "same", "runAttempt": 1, "error": "e", "errorPayload": {"apiKey": "k"}}, {"runId": "r1", "key": "a", "leaseId": "same", "runAttempt": 1, "failureKind": "odd"}]}')) as e),
  '[["d", "failed", null, null, "terminal", "e", {"apiKey": "[redacted]"}], ["a", "failed", null, null, "terminal", "", null]]', 'fail many; terminal unless repairable');
select pg_temp.ask('claim_runtime_step_receipt', '{"key": "object", "leaseId": "o"}');
select is(pg_temp.short(pg_temp.ask('fail_runtime_step_receipt', '{"key": "object", "leaseId": "o", "error": {"code": 7, "password": "x"}}')) ->> 5,
  '{"code": 7, "password": [redacted]}', 'an error that is no text is kept as its text');
select is(pg_temp.short(pg_temp.ask('claim_runtime_step_receipt', '{"key": "d", "leaseId": "x"}')) -> 1, '"failed"', 'a terminal failure is memoised');
select is(pg_temp.short(pg_temp.ask('claim_runtime_step_receipt', '{"key": "d", "leaseId": "x", "forceFailedRefresh": true}')) -> 1, '"running"', 'forceFailedRefresh');
select is((select jsonb_agg(pg_temp.short(e.value) -> 1) from jsonb_array_elements(
    pg_temp.ask('heartbeat_runtime_step_receipts', '{"keys": ["d", "a"], "leaseIds": ["x", "same"]}')) as e),
  '["running", null]', 'heartbeat with a lease id each; what is lost is null');
select is((select jsonb_agg(pg_temp.short(e.value) -> 1) from jsonb_array_elements(
    pg_temp.ask('heartbeat_runtime_step_receipts', '{"keys": ["d"], "leaseId": "x"}')) as e),
  '["running"]', 'heartbeat with one lease id for all');
select pg_temp.ask('heartbeat_runtime_step_receipts', '{"keys": ["d"], "leaseId": "x", "leaseSeconds": 300}');
select ok((select r.lease_expires_at > now() + interval '299 s' from counterfoil.step_receipts as r where r.key = 'd'),
  'heartbeat for as long as it says');
select is((pg_temp.ask('mark_runtime_step_receipts_queued', '{"receipts": [{"runId": "r1", "key": "d", "leaseId": "x", "runAttempt": 1}]}') -> 0) ->> 'status',
  'queued', 'mark queued');
select is((pg_temp.ask('mark_runtime_step_receipts_running', '{"receipts": [{"runId": "r1", "key": "d", "leaseId": "x", "runAttempt": 1}]}') -> 0) ->> 'status',
  'running', 'mark running');
select is(pg_temp.ask('mark_runtime_step_receipts_running', '{"receipts": []}'), '[]', 'mark nothing');
select is(pg_temp.ask('release_runtime_step_receipt', '{"key": "d", "leaseId": "x"}') ->> 'status', 'queued', 'release');
select pg_temp.ask('claim_runtime_step_receipt', '{"key": "d", "leaseId": "y"}');
select is(pg_temp.short(pg_temp.ask('skip_runtime_step_receipt', '{"key": "d", "leaseId": "y", "output": {"password": "x"}}')),
  '["d", "skipped", null, {"password": "[redacted]"}, null, null]', 'skip');
select is(pg_temp.ask('observe_docflow_node', '{"nodeId": "n", "status": "started"}'), '{"ok": true}', 'observe');

-- What the functions raise, the gateway maps.
select pg_temp.raises($$ select pg_temp.ask('complete_runtime_step_receipt', '{"key": "d", "leaseId": "z"}') $$, 'RL004', 'receipt_lease_not_current');
select pg_temp.raises($$ select pg_temp.ask('skip_runtime_step_receipt', '{"key": "none", "leaseId": "z"}') $$, 'RL002', 'receipt_not_found');
select pg_temp.raises($$ select pg_temp.ask('claim_runtime_step_receipt', '{"key": "x", "runAttempt": 1.5}') $$, 'RL001', 'runAttempt');
select pg_temp.raises($$ select pg_temp.ask('claim_runtime_step_receipts', '{"keys": ["x"], "leaseIds": []}') $$, 'RL001', 'leaseIds');
select pg_temp.raises($$ select pg_temp.ask('claim_runtime_step_receipts', '{"keys": ["x", "y"], "leaseIds": ["a", {}]}') $$, 'RL001', 'leaseIds[1]');
select pg_temp.raises($$ select pg_temp.ask('claim_runtime_step_receipts', jsonb_build_object('keys', '["x"]'::jsonb, 'leaseIds', jsonb_build_array(repeat('x', 201)))) $$,
  'RL001', 'leaseIds[0]');
select is(pg_temp.short(pg_temp.ask('claim_runtime_step_receipt', '{"key": "one", "leaseId": "l1", "leaseIds": ["x", "y"], "runAttempt": 1.0}')) -> 2,
  'true', 'a list of lease ids means nothing beside a single key, and 1.0 is 1');
select is(pg_temp.ask('claim_runtime_step_receipts', '{"keys": ["two"], "leaseId": "l2"}') #>> '{0,leaseId}' = 'l2',
  false, 'nor one lease id beside many keys');
select is(pg_temp.ask('complete_runtime_step_receipts', '{"receipts": [{"runId": "r1", "key": "one", "leaseId": "l1", "runAttempt": 1.0}]}') #>> '{0,status}',
  'completed', 'in a batch 1.0 is 1 too');
select pg_temp.ask('claim_runtime_step_receipts', '{"keys": ["number"], "leaseIds": [17], "leaseSeconds": 99999999999}');
select is((select jsonb_agg(jsonb_array_length(jsonb_path_query_array(pg_temp.ask('heartbeat_runtime_step_receipts', '{"keys": ["number"], "leaseSeconds": 99999999999}' || l.lease), '$[*] ? (@ != null)')))
   from (values ('{"leaseIds": [17]}'::jsonb), ('{"leaseIds": ["17"]}'), ('{"leaseId": 17}'), ('{"leaseId": 18}'), ('{"leaseId": false}'), ('{"leaseIds": [true]}'), ('{"leaseIds": [{}]}'), ('{"leaseId": [17]}')) as l (lease)),
  '[1, 1, 1, 0, 0, 0, 0, 0]', 'a number stands for its digits');
select ok((select r.lease_expires_at between clock_timestamp() + interval '295 s' and clock_timestamp() + interval '300 s' from counterfoil.step_receipts as r where r.key = 'number'),
  'a lease of any length is clamped');

-- The format of the answer is named, whatever the answer.
select is(
  (select jsonb_agg(d.headers ->> 'x-counterfoil-receipt-wire-format' order by f.format)
   from (values (-1), (1), (2), (3), (4)) as f (format)
   cross join counterfoil.dispatch_receipt_action('{}', '{}', f.format) as d),
  '["1", "1", "2", "3", "3"]', 'every answer names its wire format');
select is((select d.headers from counterfoil.dispatch_receipt_action('{"orgId": "acme", "playName": "p", "runId": "r1"}',
    '{"action": "get_runtime_step_receipt", "playName": "p", "key": "b"}', null) as d),
  '{"content-type": "application/json", "x-counterfoil-receipt-wire-format": "3"}', 'it is 3 where the caller does not say');
select is(
  (select row(sum(k.reads), sum(k.read_hits), sum(k.claims), sum(k.claims_granted), sum(k.claims_memoised), sum(k.claims_forced))::text
   from counterfoil.receipt_counters as k),
  '(6,3,16,12,3,1)', 'reads and claims are counted');

select * from finish();
rollback;
