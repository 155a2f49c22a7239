begin;
\ir ../setup.psql
\ir setup.psql
select plan(12);

select pg_temp.run_with(
  array['run.events', 'runner.logs', 'step.receipt', 'run.progress'],
  array[
    '{"deferredProjection": true, "producerAttempt": 2, "events": [
        {"type": "log.appended", "lines": ["one", "  ", " two "], "lineContexts": [{"level": "info"}, null, {"level": "error"}]},
        {"type": "stage.done", "message": "half way", "stage": 1}]}'::jsonb,
    '{"deferredProjection": true, "searchOnly": true, "lines": ["late"]}'::jsonb,
    '{"deferredProjection": true, "key": "k1", "status": "completed"}'::jsonb,
    '{"deferredProjection": true, "done": 3}'::jsonb
  ]);

select is(
  counterfoil.materialize_runtime_outbox_event('acme', 'f1', 'me') ? 'deferredProjection', false,
  'the projected payload is no longer deferred');
select is(
  pg_temp.rows($$ select j.channel, j.line, j.level, j.producer_attempt as "of" from counterfoil.run_journal as j order by j.channel, j.position $$),
  '[{"channel": "log", "line": "one", "level": "info", "of": 2}, {"channel": "log", "line": "two", "level": "error", "of": 2},
    {"channel": "progress", "line": "half way", "level": null, "of": 2}]',
  'lines are trimmed, blank ones drop out with their context, other events become progress');
select is(
  (select o.deferred from counterfoil.outbox as o where o.event_id = 'f1'), false, 'the fact can be delivered now');
select is(
  (select o.payload_digest from counterfoil.outbox as o where o.event_id = 'f1') is not null, true,
  'what the fact said at first can still be told from another payload');
select is(
  counterfoil.materialize_runtime_outbox_event('acme', 'f1', 'me') -> 'producerAttempt', '2',
  'a fact that is materialised already answers its payload');
select is((select count(*) from counterfoil.run_journal), 3::bigint, 'and writes nothing again');

select lives_ok($$ select counterfoil.materialize_runtime_outbox_event('f2', 'me') $$, 'the form without an org finds it');
select is(
  (select o.payload -> 'searchOnly' from counterfoil.outbox as o where o.event_id = 'f2'), 'true',
  'a search-only fact stays one');
select lives_ok($$ select counterfoil.materialize_runtime_outbox_event('acme', 'f3', 'me') $$);
select is(
  (select j.line from counterfoil.run_journal as j where j.channel = 'receipt'), 'k1 completed', 'a receipt event is readable');
select lives_ok($$ select counterfoil.materialize_runtime_outbox_event('acme', 'f4', 'me') $$);
select is(
  (select j.details from counterfoil.run_journal as j where j.event_id = 'f4'), '{"done": 3}',
  'a progress fact keeps its data');

select * from finish();
rollback;
