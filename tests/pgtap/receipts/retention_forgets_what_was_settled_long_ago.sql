begin;
\ir ../setup.psql
\ir setup.psql
select plan(9);

select pg_temp.held_run('r1');
select pg_temp.claim('r1', array['a', 'b', 'c', 'run'], array['a', 'b', 'c', 'run']);
select counterfoil.complete_receipts('acme', 'r1', pg_temp.item('a', 'a') || pg_temp.item('b', 'b') || pg_temp.item('c', 'c'));
select counterfoil.observe_docflow_node('acme', 'r1', '{"nodeId": "n", "status": "started"}');
select is((select p::text from counterfoil.purge_receipts() as p), '(0,0,f)', 'nothing is old enough');
update counterfoil.step_receipts set settled_at = now() - interval '91 days' where key in ('a', 'b');
update counterfoil.step_receipts set created_at = now() - interval '91 days', updated_at = now() - interval '91 days' where key = 'run';
update counterfoil.observations set updated_at = now() - interval '91 days';
select is((select p::text from counterfoil.purge_receipts(1) as p), '(1,1,t)', 'so many at a time');
select is((select p::text from counterfoil.purge_receipts(1) as p), '(1,0,t)', 'until all are gone');
select is((select p::text from counterfoil.purge_receipts() as p), '(0,0,f)', 'and no more');
select is((select array_agg(r.key order by r.key) from counterfoil.step_receipts as r), array['c', 'run'], 'what is younger stays, and what still runs');
select counterfoil.set_setting('receipt_retention', '3600');
update counterfoil.step_receipts set settled_at = now() - interval '61 minutes' where key = 'c';
select is((select p.receipts from counterfoil.purge_receipts() as p), 1::bigint, 'the setting says how old');
select is(pg_temp.claim('r1', array['c'], array['x']), '[["running", true]]', 'a forgotten step is computed anew');
select pg_temp.raises($$ select counterfoil.purge_receipts(0) $$, 'RL001', 'p_limit');
select pg_temp.raises($$ select counterfoil.purge_receipts(100001) $$, 'RL001', 'p_limit');

select * from finish();
rollback;
