-- A draining worker gives its runs back; the attempt does not count.
begin;
\ir ../setup.psql
\ir setup.psql
select plan(14);

select is(pg_temp.admit('a', '{"maxAttempts": 1}'), 'admitted', 'a run with one attempt');
select is(pg_temp.claim(), array['a'], 'is claimed');
create function pg_temp.release(p_run text)
returns text language sql volatile parallel unsafe as $function$
  select counterfoil.release_attempt((l).org_id, (l).run_id, (l).attempt, (l).lease_id) from pg_temp.lease(p_run) as l
$function$;
select is(pg_temp.release('a'), 'waiting', 'it is given back');
select is(pg_temp.release('a'), 'waiting', 'a repeat answers the same');
select pg_temp.raises($$ select pg_temp.complete('a') $$, 'RL003', 'attempt_answer', 'a completion after it is refused');
select is(pg_temp.claim(), array['a'], 'it is claimed again at once');
select is((select (l).attempt from pg_temp.lease('a') as l), 2, 'as its second attempt');
select pg_temp.lapse('a');
select pg_temp.raises($$ select pg_temp.release('a') $$, 'RL004', 'attempt_lease_not_current', 'a lapsed lease gives nothing back');
select is((select r.outcome from counterfoil.recover_attempts(9, 'default') as r), 'failed', 'which was its last');
select is(pg_temp.admit('b'), 'admitted', 'another run');
select is(pg_temp.claim(), array['b'], 'is claimed');
select is((select c.outcome from counterfoil.cancel_run('org', 'b', null) as c), 'requested', 'and to be cancelled');
select is(pg_temp.release('b'), 'cancelled', 'given back, it ends');
select is(pg_temp.facts('b'), array['run.created', 'run.started', 'run.cancelled'], 'as cancelled');

select * from finish();
rollback;
