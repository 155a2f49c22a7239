begin;
\ir ../setup.psql
select plan(27);

create function pg_temp.observe(p_status text, p_rest jsonb default '{}')
returns boolean language sql volatile parallel unsafe as $function$
  select counterfoil.observe_docflow_node('acme', 'r1', jsonb_build_object('nodeId', 'n', 'status', p_status) || p_rest)
$function$;
create function pg_temp.seen() returns jsonb language sql stable parallel safe as $function$
  select jsonb_agg(jsonb_build_array(o.attempt, o.invocation_seq, o.status, o.inputs, o.outputs, o.error) order by o.attempt, o.invocation_seq)
  from counterfoil.observations as o
$function$;

select is(pg_temp.observe('started', '{"inputs": {"a": 1}}'), true, 'a start is news');
select is(pg_temp.seen(), '[[0, 0, "started", {"a": 1}, null, null]]', 'attempt and invocation are 0 unless said');
select is(pg_temp.observe('completed', '{"outputs": [1]}'), true, 'an end is news');
select is(pg_temp.seen(), '[[0, 0, "completed", {"a": 1}, [1], null]]', 'what was known of the inputs stays');
select is(pg_temp.observe('started', '{"inputs": {"a": 2}}'), false, 'a start that comes late is not');
select is(pg_temp.observe('failed', '{"error": "x"}'), false, 'nor is another end');
select is(pg_temp.seen(), '[[0, 0, "completed", {"a": 1}, [1], null]]', 'an end stays what it is');
select is(pg_temp.observe('completed', '{"outputs": [2]}'), true, 'the same end may be told better');
select is(pg_temp.observe('failed', '{"attempt": 1, "invocationSeq": 3, "invocationId": "i", "error": "Authorization: Bearer abc.def"}'), true, 'another invocation is another row');
select is(pg_temp.seen() -> 1, '[1, 3, "failed", null, null, "Authorization: [redacted]"]', 'errors are redacted');
select is(pg_temp.observe('started', '{"attempt": -2, "invocationSeq": 7.9}'), true, 'odd counters are made whole');
select is((select count(*) from counterfoil.observations as o where o.attempt = 0 and o.invocation_seq = 7), 1::bigint, 'and not negative');
select is(pg_temp.observe('started', '{"attempt": "x", "invocationSeq": 1e40}'), true, 'or huge');

select pg_temp.observe('completed', jsonb_build_object('invocationSeq', 8, 'inputs', jsonb_build_object('password', 'x'), 'outputs', repeat('"', 100000)));
select is((select array[o.inputs::text, o.inputs_truncated::text, o.outputs_truncated::text] from counterfoil.observations as o where o.invocation_seq = 8),
  array['{"password": "[redacted]"}', 'false', 'true'], 'previews are sanitised, and say when they were cut');
select ok((select octet_length(o.outputs::text) <= 4096 from counterfoil.observations as o where o.invocation_seq = 8), 'they are bounded');
select pg_temp.observe('started', jsonb_build_object('invocationSeq', 10, 'inputs', (select jsonb_agg('{"pwd": 1}'::jsonb) from generate_series(1, 300)), 'outputs', (repeat('[', 90) || repeat(']', 90))::jsonb));
select is((select row(o.inputs_truncated, jsonb_typeof(o.inputs))::text from counterfoil.observations as o where o.invocation_seq = 10),
  '(t,string)', 'a preview that only its markers made too long is cut, and says so');
select is((select o.outputs_truncated from counterfoil.observations as o where o.invocation_seq = 10), true, 'what lay too deep says so as well');
select pg_temp.observe('started', '{"invocationSeq": 9, "inputs": "x", "inputsTruncated": true, "at": 1767323045678}');
select is((select row(o.inputs_truncated, o.observed_at at time zone 'UTC')::text from counterfoil.observations as o where o.invocation_seq = 9),
  '(t,"2026-01-02 03:04:05.678")', 'the observer''s own word and time are kept');

-- Previews use their room: the JSON string, as it is kept, is as long as the setting says, or shorter by no more than what one
-- character takes.
select pg_temp.observe('failed', jsonb_build_object('invocationSeq', 11, 'inputs', repeat('x', 5000), 'outputs', jsonb_build_object('q', repeat('"\é𝄞', 5000)), 'error', repeat('x', 5000)));
select is((select octet_length(o.inputs::text) from counterfoil.observations as o where o.invocation_seq = 11), 4096, 'a preview uses its room');
select ok((select octet_length(o.outputs::text) between 4090 and 4096 from counterfoil.observations as o where o.invocation_seq = 11), 'also one of quotes and long characters');
select is((select row(o.outputs_truncated, starts_with(o.outputs #>> '{}', '{"q": "\"\\é𝄞'))::text from counterfoil.observations as o where o.invocation_seq = 11),
  '(t,t)', 'it is the beginning');
select is((select array[octet_length(o.error)::text, right(o.error, 13)] from counterfoil.observations as o where o.invocation_seq = 11),
  array['4096', 'x [truncated]'], 'an error is cut, and says so');
-- Whatever the invocation is called, it is observed.
select pg_temp.observe('started', jsonb_build_object('invocationSeq', 20 + i.nr, 'invocationId', i.id))
from (values (1, to_jsonb(''::text)), (2, to_jsonb(repeat('x', 300))), (3, to_jsonb(e'a\nb'::text)), (4, '7')) as i (nr, id);
select is((select array_agg(left(o.invocation_id, 5) || length(o.invocation_id) order by o.invocation_seq) from counterfoil.observations as o where o.invocation_seq between 21 and 24),
  array[null, 'xxxxx200', e'a\nb3', null], 'an odd invocation id loses no observation');

select pg_temp.raises($$ select counterfoil.observe_docflow_node('acme', 'r1', '{"status": "started"}') $$, 'RL001', 'p_observation.nodeId');
select pg_temp.raises($$ select counterfoil.observe_docflow_node('acme', 'r1', '{"nodeId": "n", "status": "done"}') $$, 'RL001', 'p_observation.status');
select pg_temp.raises($$ select counterfoil.observe_docflow_node('acme', 'r1', '[]') $$, 'RL001', 'p_observation');
select pg_temp.raises($$ select counterfoil.observe_docflow_node('acme', '', '{}') $$, 'RL001', 'p_run_id');

select * from finish();
rollback;
