begin;
\ir ../setup.psql
\ir setup.psql
select plan(20);

-- The run's facts, delivered as far as the deliveries below say; f4 is pending.
select pg_temp.run_with(
  array['run.events', 'runner.logs', 'run.progress', 'runner.logs'],
  array[
    '{"events": [{"type": "log.appended", "lines": ["a"], "lineContexts": [null], "lineIds": ["1"], "channel": "log"}, {"type": "other", "lines": ["mine"]}]}'::jsonb,
    '{"lines": ["b"], "lineContexts": [null], "lineIds": ["2"], "kept": 1}'::jsonb,
    '{"lines": 3, "terminalProgressEvents": [{"type": "log.appended", "lines": ["c"]}], "terminalLogLines": ["d"], "terminalLogContexts": [null], "terminalLogIds": [null]}'::jsonb,
    '{"lines": ["pending"]}'::jsonb
  ]);
update counterfoil.lanes as l set head_seq = 5, lease_owner = null, lease_expires_at = null, lease_through_seq = null;
insert into counterfoil.deliveries (org_id, run_id, lane, first_seq, last_seq, outcome, lease_owner, delivered_at)
values ('acme', 'r1', 'lifecycle', 1, 1, 'delivered', 'me', now() - interval '40 days'),
  ('acme', 'r1', 'lifecycle', 2, 3, 'delivered', 'me', now() - interval '8 days'),
  ('acme', 'r1', 'lifecycle', 4, 4, 'delivered', 'me', now() - interval '6 days');

select pg_temp.raises($$ select * from counterfoil.purge_delivered(0) $$, 'RL001', 'p_limit');
select is(
  pg_temp.rows($$ select * from counterfoil.purge_delivered(100) $$),
  '[{"logs_purged": 2, "facts_removed": 1, "more": false}]', 'what is past its time goes, in one call');
select is((select count(*) from counterfoil.outbox as o where o.event_id = 'created'), 0::bigint, 'a fact past outbox_retention is gone');
select is(
  (select o.payload from counterfoil.outbox as o where o.event_id = 'f1'),
  '{"events": [{"type": "log.appended", "channel": "log"}, {"type": "other", "lines": ["mine"]}]}',
  'log events lose their text, other events keep what they call lines');
select is((select o.payload from counterfoil.outbox as o where o.event_id = 'f2'), '{"kept": 1}', 'carried logs lose theirs');
select isnt((select o.payload_digest from counterfoil.outbox as o where o.event_id = 'f2'), null, 'what the fact said can still be told');
select is(
  (select o.payload -> 'terminalLogLines' from counterfoil.outbox as o where o.event_id = 'f3'), '["d"]',
  'a fact delivered lately keeps its text');
select is((select o.payload from counterfoil.outbox as o where o.event_id = 'f4'), '{"lines": ["pending"]}', 'a pending fact is not touched');

update counterfoil.deliveries as d set delivered_at = now() - interval '8 days' where d.first_seq = 4;
select is(
  pg_temp.rows($$ select * from counterfoil.purge_delivered(1) $$),
  '[{"logs_purged": 1, "facts_removed": 0, "more": true}]', 'a full batch says that there may be more');
select is(
  (select o.payload from counterfoil.outbox as o where o.event_id = 'f3'),
  '{"lines": 3, "terminalProgressEvents": [{"type": "log.appended"}]}', 'terminal log text goes, nested too');
select is(
  pg_temp.rows($$ select * from counterfoil.purge_delivered(1) $$),
  '[{"logs_purged": 0, "facts_removed": 0, "more": false}]', 'nothing is taken twice');

-- Positions are given once, also when nothing is left to count on from.
savepoint before_all_went;
update counterfoil.runs set status = 'running', attempt = 1, started_at = now();
delete from counterfoil.lanes;
update counterfoil.deliveries as d set delivered_at = now() - interval '40 days';
insert into counterfoil.deliveries (org_id, run_id, lane, first_seq, last_seq, outcome, lease_owner, delivered_at)
values ('acme', 'r1', 'lifecycle', 5, (select max(o.seq) from counterfoil.outbox as o where o.run_id = 'r1'), 'delivered', 'me', now() - interval '40 days');
create temporary table latest on commit drop as select max(o.seq) as seq from counterfoil.outbox as o where o.run_id = 'r1';
select counterfoil.purge_delivered(100);
select is((select count(*) from counterfoil.outbox as o where o.run_id = 'r1'), 0::bigint, 'all of a run''s facts can go while the run is kept');
select is(
  (select a.seq from counterfoil.append_fact('acme', 'r1', 'next', 'runner.logs', '{"lines": ["more"], "lineContexts": [null], "lineIds": ["9"]}') as a),
  (select l.seq + 1 from latest as l), 'the next fact counts on');
select is(
  (select count(*) from counterfoil.append_facts('acme', 'r1', '[{"eventId": "two", "eventType": "runner.logs", "payload": {"lines": []}},
    {"eventId": "three", "eventType": "runner.logs", "payload": {"lines": []}}]') as a, latest as l where a.seq in (l.seq + 2, l.seq + 3)),
  2::bigint, 'so do many');
rollback to before_all_went;

-- Nor when the latest went and an older one still waits in the other lane.
savepoint before_the_latest_went;
update counterfoil.runs set status = 'running', attempt = 1, started_at = now();
create temporary table latest on commit drop as
select a.seq from counterfoil.append_fact('acme', 'r1', 'waits', 'runner.logs', '{"searchOnly": true, "lines": []}') as a;
insert into latest select a.seq from counterfoil.append_fact('acme', 'r1', 'went', 'runner.logs', '{}') as a;
delete from counterfoil.lanes as l where l.lane = 'lifecycle';
insert into counterfoil.deliveries (org_id, run_id, lane, first_seq, last_seq, outcome, lease_owner, delivered_at)
select 'acme', 'r1', 'lifecycle', 5, max(l.seq), 'delivered', 'me', now() - interval '40 days' from latest as l;
select counterfoil.purge_delivered(100);
select is(
  (select array_agg(o.event_id) from counterfoil.outbox as o where o.seq >= (select min(l.seq) from latest as l)), array['waits'],
  'what waits outlives what came after it');
insert into latest
select a.seq from counterfoil.append_fact('acme', 'r1', 'next', 'runner.logs', '{}') as a
union all
select a.seq from counterfoil.append_facts('acme', 'r1', '[{"eventId": "two", "eventType": "runner.logs", "payload": {}},
  {"eventId": "three", "eventType": "runner.logs", "payload": {"searchOnly": true}}]') as a;
select is(
  (select array_agg(l.seq - (select min(f.seq) from latest as f) order by l.seq) from latest as l), array[0, 1, 2, 3, 4]::bigint[],
  'and the next facts count on from what went');
rollback to before_the_latest_went;

-- What older runners said as tagged lines outlives the lines.
select is(
  counterfoil.strip_log_text('run.completed', '{"diagnostics": {"mem": {"kept": 1}}, "terminalProgressEvents": [{"type": "log.appended",
    "lines": ["[diagnostic:disk] {\"free\": 2}"]}, {"type": "other"}],
    "terminalLogLines": ["a", " [diagnostic:mem] {\"peak\": 5}", "[diagnostic:cpu] {\"load\": 1}", "[diagnostic:cpu] {\"load\": 2}", "[diagnostic:bad] {"]}'),
  '{"diagnostics": {"mem": {"kept": 1}, "cpu": {"load": 2}},
    "terminalProgressEvents": [{"type": "log.appended", "diagnostics": {"disk": {"free": 2}}}, {"type": "other"}]}',
  'tagged lines become fields, where no field says so already');
select is(
  counterfoil.strip_log_text('runner.logs', '{"lines": ["[diagnostic:mem] {\"peak\": 5}"], "lineIds": ["1"]}'),
  '{"diagnostics": {"mem": {"peak": 5}}}', 'of carried logs as well');

update pg_index as i set indisready = false where i.indexrelid = 'counterfoil.run_journal_retention_idx'::regclass;
select pg_temp.raises($$ select * from counterfoil.purge_delivered(1) $$, 'RL005', 'retention_index_not_ready');
select ok(
  has_function_privilege('counterfoil_operator', 'counterfoil.purge_delivered(integer)', 'execute')
  and not has_function_privilege('counterfoil_dispatcher', 'counterfoil.purge_delivered(integer)', 'execute'),
  'operators may purge, dispatchers may not');

select * from finish();
rollback;
