begin;
\ir ../setup.psql
\ir setup.psql
select plan(9);

select pg_temp.run_with(
  array['run.events', 'runner.logs', 'runner.logs', 'runner.logs', 'runner.logs', 'runner.logs'],
  array[
    '{"deferredProjection": true, "events": [{"type": "log.appended", "lines": ["a", "b"], "lineIds": ["1", "2"]}]}'::jsonb,
    '{"deferredProjection": true, "lines": ["b", "c"], "lineIds": ["2", "3"]}'::jsonb,
    '{"deferredProjection": true, "lines": ["fresh", "not b"], "lineIds": ["4", "2"]}'::jsonb,
    '{"deferredProjection": true, "lines": ["x", "x"], "lineIds": ["5", "5"]}'::jsonb,
    '{"deferredProjection": true, "lines": ["x", "y"], "lineIds": ["6", "6"]}'::jsonb,
    '{"deferredProjection": true, "lines": ["z"], "lineIds": ["7"]}'::jsonb
  ],
  '{"runtimeLogIdentity": "origin"}');

select lives_ok($$ select counterfoil.materialize_runtime_outbox_event('acme', 'f1', 'me') $$);
select lives_ok($$ select counterfoil.materialize_runtime_outbox_event('acme', 'f2', 'me') $$, 'a line that came before is skipped');
select is(
  pg_temp.rows($$ select j.entry_id as id, j.line from counterfoil.run_journal as j order by j.position $$),
  '[{"id": "1", "line": "a"}, {"id": "2", "line": "b"}, {"id": "3", "line": "c"}]', 'each line is there once');
select pg_temp.raises(
  $$ select counterfoil.materialize_runtime_outbox_event('acme', 'f3', 'me') $$, 'P0001', 'id:log:2',
  'the same id with other text is refused');
select is(
  (select count(*) from counterfoil.run_journal as j where j.line = 'fresh'), 0::bigint, 'and nothing of the fact is kept');
select lives_ok(
  $$ select counterfoil.materialize_runtime_outbox_event('acme', 'f4', 'me') $$, 'the same entry twice in a fact is one');
select pg_temp.raises(
  $$ select counterfoil.materialize_runtime_outbox_event('acme', 'f5', 'me') $$, 'P0001', 'id:log:6',
  'one id for two texts in a fact is refused');
-- Two who index one fact at once may meet at an entry's place before they meet at its identity. Here the place is another entry's.
insert into counterfoil.run_journal
select (jsonb_populate_record(j, jsonb_build_object('identity', 'other', 'position', o.seq * 1048576 + 1))).*
from counterfoil.run_journal as j, counterfoil.outbox as o
where j.entry_id = '1' and o.event_id = 'f6';
select pg_temp.raises(
  $$ select counterfoil.materialize_runtime_outbox_event('acme', 'f6', 'me') $$, 'P0001', 'id:log:7',
  'a place that is taken is met in words too');
select is((select o.deferred from counterfoil.outbox as o where o.event_id = 'f5'), true, 'a refused fact stays deferred');

select * from finish();
rollback;
