begin;
\ir ../setup.psql
\ir ../ledger/setup.psql
select plan(11);

select pg_temp.run_with(r, array['run.completed'], array['{}']::jsonb []) from unnest(array['old', 'blocked', 'young', 'unended']) as r;
select pg_temp.deliver(r) from unnest(array['old', 'blocked', 'young']) as r cross join generate_series(1, 3);
select pg_temp.deliver('unended') from generate_series(1, 2);
update counterfoil.runs set status = 'completed', ended_at = now(), terminal_event_id = run_id || '-f1' where run_id <> 'unended';
select is((select p::text from counterfoil.purge_runs() as p), '(0,0)', 'nothing is old enough');

update counterfoil.ledgers set ended_at = now() - interval '400 days' where run_id in ('old', 'blocked');
-- A ledger whose run lives in another database.
insert into counterfoil.ledgers (org_id, run_id, status, created_at, ended_at, updated_at)
values ('acme', 'elsewhere', 'failed', now(), now() - interval '500 days', now());
insert into counterfoil.lanes (org_id, run_id, lane, priority, due_at, head_seq, tail_seq, blocked_at)
values ('acme', 'blocked', 'search', 3, now(), 1, 1, now());
select is(counterfoil.health() #> '{retentionBacklog,runs,count}', '3', 'health says what there is to do');
select is((select p::text from counterfoil.purge_runs(1) as p), '(1,0)', 'the first to end goes first, so many at a time');
select is((select p::text from counterfoil.purge_runs() as p), '(1,1)', 'the other with its run');
select is((select array_agg(l.run_id order by l.run_id) from counterfoil.ledgers as l), array['blocked', 'unended', 'young'], 'a blocked fact keeps its ledger');
select is((select array_agg(r.run_id order by r.run_id) from counterfoil.runs as r), array['blocked', 'unended', 'young'], 'and its run');
select is((select count(*) from counterfoil.outbox as o where o.run_id = 'old'), 0::bigint, 'facts go with the run');
select is((select count(*) from counterfoil.ledger_events as e where e.run_id = 'old'), 0::bigint, 'events with the ledger');
select is((select p::text from counterfoil.purge_runs() as p), '(0,0)', 'and then there is no more');
select pg_temp.raises($$ select counterfoil.purge_runs(0) $$, 'RL001', 'p_limit');
select pg_temp.raises($$ select counterfoil.purge_runs(null) $$, 'RL001', 'p_limit');

select * from finish();
rollback;
