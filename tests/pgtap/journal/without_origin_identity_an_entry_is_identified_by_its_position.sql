begin;
\ir ../setup.psql
\ir setup.psql
select plan(5);

select pg_temp.run_with(
  array['run.events', 'runner.logs', 'runner.logs', 'runner.logs'],
  array[
    '{"deferredProjection": true, "producerAttempt": 1, "events": [{"type": "log.appended", "firstPosition": 10, "lines": ["a", "b"], "lineIds": ["1", "2"]}]}'::jsonb,
    '{"deferredProjection": true, "producerAttempt": 1, "firstPosition": 11, "lines": ["b", "c"]}'::jsonb,
    '{"deferredProjection": true, "producerAttempt": 2, "firstPosition": 10, "lines": ["b", "c"]}'::jsonb,
    '{"deferredProjection": true, "producerAttempt": 1, "firstPosition": 10, "lines": ["other"]}'::jsonb
  ]);

select lives_ok($$ select counterfoil.materialize_runtime_outbox_event('acme', 'f1', 'me') $$);
select lives_ok($$ select counterfoil.materialize_runtime_outbox_event('acme', 'f2', 'me') $$);
select lives_ok($$ select counterfoil.materialize_runtime_outbox_event('acme', 'f3', 'me') $$);
select is(
  pg_temp.rows($$ select j.identity as id, j.line from counterfoil.run_journal as j order by j.identity $$),
  '[{"id": "at:1:log:10", "line": "a"}, {"id": "at:1:log:11", "line": "b"}, {"id": "at:1:log:12", "line": "c"},
    {"id": "at:2:log:10", "line": "b"}, {"id": "at:2:log:11", "line": "c"}]',
  'producer attempt, channel and position make an entry itself');
select pg_temp.raises(
  $$ select counterfoil.materialize_runtime_outbox_event('acme', 'f4', 'me') $$, 'P0001', 'at:1:log:10');

select * from finish();
rollback;
