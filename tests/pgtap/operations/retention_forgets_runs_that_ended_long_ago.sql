begin;
\ir ../setup.psql
\ir ../ledger/setup.psql
select plan(15);

select pg_temp.run_with(r, array['run.completed'], array['{}']::jsonb []) from unnest(array['old', 'blocked', 'kept', 'young', 'unended']) as r;
select pg_temp.deliver(r) from unnest(array['old', 'blocked', 'kept', 'young']) as r cross join generate_series(1, 3);
select pg_temp.deliver('unended') from generate_series(1, 2);
update counterfoil.runs set status = 'completed', ended_at = now(), terminal_event_id = run_id || '-f1' where run_id <> 'unended';
select is(pg_temp.rows($$ select * from counterfoil.purge_ledgers() $$), '[{"ledgers": 0, "events": 0, "more": false}]', 'no ledger is old enough');
select is(pg_temp.rows($$ select * from counterfoil.purge_runs() $$), '[{"runs": 0, "more": false}]', 'no run is old enough');

update counterfoil.ledgers set ended_at = now() - interval '400 days' where run_id in ('old', 'blocked', 'kept');
update counterfoil.runs set ended_at = now() - interval '400 days' where run_id in ('old', 'blocked', 'kept');
update counterfoil.deliveries set delivered_at = now() - interval '400 days' where run_id in ('old', 'blocked');
-- A ledger whose run lives in another database.
insert into counterfoil.ledgers (org_id, run_id, status, created_at, ended_at, updated_at)
values ('acme', 'elsewhere', 'failed', now(), now() - interval '500 days', now());
insert into counterfoil.lanes (org_id, run_id, lane, priority, due_at, head_seq, tail_seq, blocked_at)
values ('acme', 'blocked', 'lifecycle', 3, now(), 1, 1, now());
select is(counterfoil.health() #> '{retentionBacklog,ledgers,count}', '4', 'health says what there is to do');

select is(
  pg_temp.rows($$ select * from counterfoil.purge_ledgers(2) $$), '[{"ledgers": 1, "events": 2, "more": true}]',
  'about so many events at a time: a longer ledger goes over several calls');
select is(
  pg_temp.rows($$ select * from counterfoil.purge_ledgers() $$), '[{"ledgers": 2, "events": 4, "more": false}]', 'then the rest');
select is(
  (select array_agg(l.run_id order by l.run_id) from counterfoil.ledgers as l), array['blocked', 'unended', 'young'],
  'a fact to deliver keeps its run''s ledger');
select is((select count(*) from counterfoil.ledger_events as e where e.run_id in ('old', 'kept')), 0::bigint, 'events go with the ledger');

select is(
  pg_temp.rows($$ select * from counterfoil.purge_runs() $$), '[{"runs": 0, "more": false}]',
  'a run of which there are facts stays, whatever became of its ledger');
select lives_ok($$ select counterfoil.maintain(100) $$, 'one call does it all, facts first');
select is(
  (select array_agg(r.run_id order by r.run_id) from counterfoil.runs as r), array['blocked', 'kept', 'unended', 'young'],
  'facts kept by their own retention keep their run, and so does a blocked one');
select is((counterfoil.maintain() ->> 'more')::boolean, false, 'and then there is no more');

update counterfoil.deliveries set delivered_at = now() - interval '400 days' where run_id = 'kept';
update counterfoil.runs set parent_run_id = 'kept' where run_id = 'young';
select is((counterfoil.maintain() -> 'runsRemoved')::integer, 0, 'a run stays while one that it launched does');
update counterfoil.runs set parent_run_id = null where run_id = 'young';
select is((counterfoil.maintain() -> 'runsRemoved')::integer, 1, 'and goes after it');
select pg_temp.raises($$ select * from counterfoil.purge_ledgers(0) $$, 'RL001', 'p_limit');
select pg_temp.raises($$ select counterfoil.maintain(0) $$, 'RL001', 'p_limit');

select * from finish();
rollback;
