begin;
\ir ../setup.psql
\ir setup.psql
select plan(9);

select pg_temp.run_with(array['runner.logs'], array['{"deferredProjection": true, "lines": ["a"]}'::jsonb]);

select pg_temp.raises($$ select counterfoil.materialize_runtime_outbox_event('acme', 'f1', 'you') $$, 'RL004', 'delivery_lease_not_current');
select pg_temp.raises($$ select counterfoil.materialize_runtime_outbox_event('acme', 'none', 'me') $$, 'RL002', 'fact_not_found');
select pg_temp.raises($$ select counterfoil.materialize_runtime_outbox_event('other', 'f1', 'me') $$, 'RL002', 'fact_not_found');
select pg_temp.raises($$ select counterfoil.materialize_runtime_outbox_event('none', 'me') $$, 'RL002', 'fact_not_found');
select pg_temp.raises($$ select counterfoil.materialize_runtime_outbox_event('acme', null, 'me') $$, 'RL001', 'p_event_id');
update counterfoil.lanes set lease_through_seq = 1;
select pg_temp.raises(
  $$ select counterfoil.materialize_runtime_outbox_event('acme', 'f1', 'me') $$, 'RL004', 'delivery_lease_not_current',
  'a lease on the facts before it is not enough');
update counterfoil.lanes set lease_through_seq = 2, lease_expires_at = now() - interval '1 second';
select pg_temp.raises($$ select counterfoil.materialize_runtime_outbox_event('acme', 'f1', 'me') $$, 'RL004', 'delivery_lease_not_current');
select is((select count(*) from counterfoil.run_journal), 0::bigint, 'nothing was indexed');
select ok(
  has_function_privilege('counterfoil_dispatcher', 'counterfoil.materialize_runtime_outbox_event(text, text, text)', 'execute')
  and not has_function_privilege('counterfoil_worker', 'counterfoil.materialize_runtime_outbox_event(text, text, text)', 'execute'),
  'dispatchers may materialise, workers may not');

select * from finish();
rollback;
