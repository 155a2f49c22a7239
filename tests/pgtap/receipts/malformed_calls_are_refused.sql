begin;
\ir ../setup.psql
\ir setup.psql
select plan(65);

select pg_temp.held_run('r1');
select pg_temp.claim('r1', array['k'], array['a']);

create function pg_temp.claiming(p_arguments text) returns text language sql immutable parallel safe as $function$
  select format('select counterfoil.claim_receipts(%s)', p_arguments)
$function$;
select pg_temp.raises(pg_temp.claiming($$ null, 'r1', 1, array['x'] $$), 'RL001', 'p_org_id');
select pg_temp.raises(pg_temp.claiming($$ 'acme', '', 1, array['x'] $$), 'RL001', 'p_run_id');
select pg_temp.raises(pg_temp.claiming($$ 'acme', 'r1', -1, array['x'] $$), 'RL001', 'p_run_attempt');
select pg_temp.raises(pg_temp.claiming($$ 'acme', 'r1', 1, null $$), 'RL001', 'p_keys');
select pg_temp.raises(pg_temp.claiming($$ 'acme', 'r1', 1, array['x', ''] $$), 'RL001', 'p_keys[1]');
select pg_temp.raises(pg_temp.claiming($$ 'acme', 'r1', 1, array[null::text] $$), 'RL001', 'p_keys[0]');
select pg_temp.raises(pg_temp.claiming($$ 'acme', 'r1', 1, array[e'x\n'] $$), 'RL001', 'p_keys[0]');
select pg_temp.raises(pg_temp.claiming($$ 'acme', 'r1', 1, array[repeat('x', 1001)] $$), 'RL001', 'p_keys[0]');
select lives_ok(pg_temp.claiming($$ 'acme', 'r1', 1, array[repeat('x', 1000)] $$), 'a key has 1000 characters at most');
select pg_temp.raises(pg_temp.claiming($$ 'acme', 'r1', 1, array[repeat('é', 901)] $$), 'RL001', 'p_keys[0]');
-- The longest org and key, of letters that do not compress, find room in an index.
select lives_ok(pg_temp.claiming($$
  (select string_agg(chr(131072 + i * 7919 % 40000), '') from generate_series(1, 200) as i), 'r1', 1,
  array[(select string_agg(chr(131072 + i * 7919 % 40000), '') from generate_series(201, 650) as i)] $$), 'a key has 1800 bytes at most');
select pg_temp.raises(pg_temp.claiming($$ 'acme', 'r1', 1, array['x', 'y'], array['a'] $$), 'RL001', 'p_lease_ids');
select pg_temp.raises(pg_temp.claiming($$ 'acme', 'r1', 1, array['x'], array[['a']] $$), 'RL001', 'p_lease_ids');
select pg_temp.raises(pg_temp.claiming($$ 'acme', 'r1', 1, array['x'], array[''] $$), 'RL001', 'p_lease_ids[0]');
select pg_temp.raises(pg_temp.claiming($$ 'acme', 'r1', 1, array['x', 'y'], array['a', repeat('b', 201)] $$), 'RL001', 'p_lease_ids[1]');
select pg_temp.raises(pg_temp.claiming($$ 'acme', 'r1', 1, array['x'], null, '{"leaseAware": true}' $$), 'RL001', 'p_lease_ids');
select pg_temp.raises(pg_temp.claiming($$ 'acme', 'r1', 1, array['x', 'y'], array['a', null], '{"leaseAware": true}' $$), 'RL001', 'p_lease_ids[1]');
select pg_temp.raises(pg_temp.claiming($$ 'acme', 'r1', 1, array['x'], null, '[]' $$), 'RL001', 'p_options');
select pg_temp.raises(pg_temp.claiming($$ 'acme', 'r1', 1, array['x'], null, '{"forceRefresh": "yes"}' $$), 'RL001', 'p_options.forceRefresh');
select pg_temp.raises(pg_temp.claiming($$ 'acme', 'r1', 1, array['x'], null, '{"leaseSeconds": "9"}' $$), 'RL001', 'p_options.leaseSeconds');
select pg_temp.raises(pg_temp.claiming(format($$ 'acme', 'r1', 1, array['none'], null, '{"ttlSeconds": %s}' $$, t.ttl)), 'RL001', 'p_options.ttlSeconds')
from (values ('0'), ('-1'), ('0.0009'), ('3155760001'), ('1e30'), ('"1"'), ('{}')) as t (ttl);
select is((select count(*) from counterfoil.step_receipts as r where r.key = 'none'), 0::bigint, 'and nothing is claimed');
select lives_ok(pg_temp.claiming(format($$ 'acme', 'r1', 1, array['x'], null, '{"ttlSeconds": %s}' $$, t.ttl)), 'a time to live: ' || t.ttl)
from (values ('0.001'), ('3155760000'), ('null')) as t (ttl);
select is(
  (select (pg_temp.raised(format('select counterfoil.claim_receipts(%s)', $$ 'acme', 'r1', 1, array['x'], null, '{"ttlSeconds": 0}' $$))).hint),
  (select (pg_temp.raised($$ select counterfoil.complete_receipts('acme', 'r1', '[{"key": "k", "ttlSeconds": 0}]') $$)).hint),
  'a claim refuses it in the words of the completion');
select pg_temp.raises(pg_temp.claiming($$ 'acme', 'r1', 1, array['x'], null, '{"force": true}' $$), 'RL001', 'p_options.force');
select lives_ok(pg_temp.claiming($$ 'acme', 'r1', 1, array['x'], null, '{"forceRefresh": null, "leaseSeconds": null}' $$), 'null means absent');
select lives_ok(pg_temp.claiming($$ 'acme', 'r1', 1, array(select 'b' || i from generate_series(1, 1000) as i) $$), '1000 keys are taken');
select pg_temp.raises(pg_temp.claiming($$ 'acme', 'r1', 1, array(select 'b' || i from generate_series(1, 1001) as i) $$), 'RL008', 'p_keys');
select pg_temp.raises($$ select counterfoil.get_receipts('acme', array['x', null]) $$, 'RL001', 'p_keys[1]');
select pg_temp.raises($$ select counterfoil.get_receipts('', array['x']) $$, 'RL001', 'p_org_id');

create function pg_temp.completing(p_receipts text) returns text language sql immutable parallel safe as $function$
  select format('select counterfoil.complete_receipts(''acme'', ''r1'', %L)', p_receipts)
$function$;
select pg_temp.raises(pg_temp.completing('{}'), 'RL001', 'p_receipts');
select pg_temp.raises(pg_temp.completing(null), 'RL001', 'p_receipts');
select pg_temp.raises(pg_temp.completing('[7]'), 'RL001', 'p_receipts[0]');
select pg_temp.raises(pg_temp.completing('[{"leaseId": "a"}]'), 'RL001', 'p_receipts[0].key');
select pg_temp.raises(pg_temp.completing('[{"key": ""}]'), 'RL001', 'p_receipts[0].key');
select pg_temp.raises(pg_temp.completing('[{"key": "k", "leaseId": 1}]'), 'RL001', 'p_receipts[0].leaseId');
select pg_temp.raises(pg_temp.completing('[{"key": "k", "leaseId": ""}]'), 'RL001', 'p_receipts[0].leaseId');
select pg_temp.raises(pg_temp.completing('[{"key": "k", "runAttempt": "1"}]'), 'RL001', 'p_receipts[0].runAttempt');
select pg_temp.raises(pg_temp.completing('[{"key": "k", "runAttempt": 1.5}]'), 'RL001', 'p_receipts[0].runAttempt');
select pg_temp.raises(pg_temp.completing('[{"key": "k", "ttlSeconds": 0}]'), 'RL001', 'p_receipts[0].ttlSeconds');
select pg_temp.raises(pg_temp.completing('[{"key": "k", "ttlSeconds": "1"}]'), 'RL001', 'p_receipts[0].ttlSeconds');
select is((select count(*) from counterfoil.complete_receipts('acme', 'r1', '[]')), 0::bigint, 'nothing to do is nothing done');
select pg_temp.raises(
  pg_temp.completing((select jsonb_agg(jsonb_build_object('key', 'k')) from generate_series(1, 1001))::text), 'RL008', 'p_receipts');

select counterfoil.set_setting('receipt_output_max_bytes', '1024');
select pg_temp.raises(
  pg_temp.completing(pg_temp.item('k', 'a', jsonb_build_object('output', repeat('x', 1023)))::text), 'RL008', 'p_receipts[0].output');
select throws_like(
  pg_temp.completing(pg_temp.item('k', 'a', jsonb_build_object('output', repeat('x', 1023)))::text),
  'The output of step ''k'' has 1025 bytes; it may have 1024.', 'the step and the limit are named');
select lives_ok(
  pg_temp.completing(pg_temp.item('k', 'a', jsonb_build_object('output', repeat('x', 1022)))::text), 'an output may have as many bytes as the setting says');

create function pg_temp.failing(p_rest jsonb) returns text language sql immutable parallel safe as $function$
  select format('select counterfoil.fail_receipts(''acme'', ''r1'', %L)', pg_temp.item('f', 'f', p_rest))
$function$;
select pg_temp.claim('r1', array['f'], array['f']);
select pg_temp.raises(pg_temp.failing('{"failureKind": "odd"}'), 'RL001', 'p_receipts[0].failureKind');
select pg_temp.raises(pg_temp.failing('{"failureKind": 1}'), 'RL001', 'p_receipts[0].failureKind');
select pg_temp.raises(pg_temp.failing('{"error": {}}'), 'RL001', 'p_receipts[0].error');
select pg_temp.raises(pg_temp.failing('{"errorPayload": []}'), 'RL001', 'p_receipts[0].errorPayload');
select lives_ok(
  pg_temp.failing(jsonb_build_object('error', repeat('x', 100000), 'errorPayload', jsonb_build_object('big', repeat('x', 2000)))),
  'no failure is too large to be kept');
select is((select array[length(r.error)::text, right(r.error, 12), r.error_payload::text] from counterfoil.step_receipts as r where r.key = 'f'),
  array['8192', ' [truncated]', '{"bytes": 2011, "truncated": true}'], 'but it is cut, and says so');

-- Only what was looked at is kept, 65536 characters. A cut is marked, however little the look left.
select is(counterfoil.bounded_error('password="' || repeat('x', 65000) || '"' || repeat(' a', 250) || ' ghp_' || repeat('a', 36), 8192),
  'password=[redacted]' || repeat(' a', 135) || ' [truncated]', 'what is cut before redaction says so as well, and leaves no half of a secret');
select is(counterfoil.bounded_error(repeat('x', 100), 100), repeat('x', 100), 'what fits stays');
select is(counterfoil.bounded_error(repeat('é', 51), 100), repeat('é', 44) || ' [truncated]', 'bytes count');
select is(
  (select array_agg(counterfoil.cut_text('aé€𝄞z', n.bytes) order by n.bytes) from generate_series(0, 12) as n (bytes)),
  array['', 'a', 'a', 'aé', 'aé', 'aé', 'aé€', 'aé€', 'aé€', 'aé€', 'aé€𝄞', 'aé€𝄞z', 'aé€𝄞z'], 'a character is cut off whole');
select pg_temp.raises($$ select counterfoil.heartbeat_receipts('acme', 'r1', '7') $$, 'RL001', 'p_receipts');

select * from finish();
rollback;
