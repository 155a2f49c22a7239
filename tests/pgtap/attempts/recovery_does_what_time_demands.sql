-- SPEC 5: expired attempts become claimable again or fail at maxAttempts; time-outs and deadlines are enforced.
begin;
\ir ../setup.psql
\ir setup.psql
select plan(47);

create function pg_temp.recover(p_limit integer default 10)
returns text[] language sql volatile parallel unsafe as $function$
  select array_agg(r.run_id || ' ' || r.attempt || ' ' || r.outcome order by r.run_id) from counterfoil.recover_attempts(p_limit, 'default') as r
$function$;

select is(pg_temp.admit('a', '{"maxAttempts": 2}'), 'admitted', 'a run with two attempts');
select is(pg_temp.claim(), array['a'], 'runs');
select is(pg_temp.recover(), null, 'a live lease is left alone');
select pg_temp.lapse('a');
select is(pg_temp.recover(), array['a 1 requeued'], 'a lapsed one is taken back');
select is(pg_temp.recover(), null, 'once');
select is(
    (select array[t.status, t.error ->> 'code'] from counterfoil.attempts as t where t.run_id = 'a'), array['lost', 'lease_expired'],
    'the attempt is lost'
);
select is(pg_temp.facts('a'), array['run.created', 'run.started'], 'no fact says so');
select is(pg_temp.claim(), array['a'], 'the run is claimed again');
select is((select (l).attempt from pg_temp.lease('a') as l), 2, 'as attempt 2');
select pg_temp.lapse('a');
select is(pg_temp.recover(), array['a 2 failed'], 'its last attempt lost, it fails');
select is(pg_temp.facts('a'), array['run.created', 'run.started', 'run.failed'], 'with a terminal');
select is(pg_temp.last_fact('a') -> 'error' ->> 'code', 'lease_expired', 'that says why');

-- An attempt's time.
select is(pg_temp.admit('t', '{"attemptTimeoutSeconds": 30, "maxAttempts": 1}'), 'admitted', 'a run with a time-out');
select is(pg_temp.claim(), array['t'], 'runs');
update counterfoil.attempts as t
set timeout_at = clock_timestamp() - interval '1 second', lease_expires_at = clock_timestamp() - interval '1 second'
where t.run_id = 't';
select is(pg_temp.recover(), array['t 1 timed_out'], 'is ended when its time is over');
select is(pg_temp.last_fact('t') -> 'error' ->> 'code', 'attempt_timeout', 'with that reason');

-- Deadlines: queued, running, between attempts, suspended.
select is(pg_temp.admit(r.id, '{"deadlineAt": "2036-01-01T00:00:00Z"}'), 'admitted', r.id)
from (values ('d-running'), ('d-retry'), ('d-public')) as r (id);
select is(cardinality(pg_temp.claim(3)), 3, 'three runs run');
select is(pg_temp.admit('d-queued', '{"deadlineAt": "2036-01-01T00:00:00Z"}'), 'admitted', 'one is queued');
select is(pg_temp.fail_run('d-retry') ->> 'outcome', 'retry_scheduled', 'one is to be tried again');
select is(
    (select s.outcome from pg_temp.lease('d-public') as l
        cross join lateral counterfoil.suspend_attempt((l).org_id, (l).run_id, (l).attempt, (l).lease_id, 'why') as s), 'suspended', 'one waits'
);
select is(pg_temp.recover(), null, 'before the deadline nothing happens');
update counterfoil.runs as r set deadline_at = clock_timestamp() - interval '1 second' where r.run_id like 'd-%';
select is(cardinality(pg_temp.recover(1)), 1, 'a batch of one does one');
select is(
    (select array_agg(o.run_id order by o.run_id) from (
        select split_part(unnest(pg_temp.recover()), ' ', 1) as run_id
        union
        select r.run_id from counterfoil.runs as r where r.status = 'failed' and r.run_id like 'd-%'
    ) as o),
    array['d-public', 'd-queued', 'd-retry', 'd-running'], 'the rest follows'
);
select is(
    (select count(*) from counterfoil.outbox as o where o.event_type = 'run.failed' and o.payload -> 'error' ->> 'code' = 'deadline_exceeded'),
    4::bigint, 'each fails with its deadline'
);
select is(pg_temp.facts('d-queued'), array['run.created', 'run.failed'], 'also the one that never started');
select is(
    (select array_agg(distinct a.status order by a.status) from counterfoil.attempts as a where a.run_id like 'd-%'), array['failed'],
    'no attempt of theirs is open'
);
select is((select count(*) from counterfoil.run_queue), 0::bigint, 'nothing is left in the queue');
select pg_temp.raises($$ select pg_temp.complete('d-running') $$, 'RL004', 'attempt_lease_not_current', 'the holder is too late');

-- Lowering how much one claim may take stops neither claims that ask for more nor recovery.
update counterfoil.settings as s set value = '2' where s.name = 'claim_batch_max';
select is(pg_temp.admit(r), 'admitted', 'a run') from unnest(array['m-1', 'm-2']) as r;
select is(cardinality(pg_temp.claim(1)) + cardinality(pg_temp.claim(5)), 2, 'a claim takes what there is');
update counterfoil.attempts as a set lease_expires_at = now() - interval '1 minute' where a.run_id like 'm-%';
select is(counterfoil.maintain(1) -> 'more', 'true', 'a full batch of recovery says that there may be more');
select is(counterfoil.maintain() #> '{recovered,requeued}', '1', 'the next takes the rest');

-- What another session holds is left for later; see tests/isolation. Arguments:
select pg_temp.raises($$ select counterfoil.recover_attempts(0, 'default') $$, 'RL001', 'p_limit');
select pg_temp.raises($$ select counterfoil.recover_attempts(1, '') $$, 'RL001', 'p_release_lane');
select pg_temp.raises($$ select counterfoil.claim_attempts('w', 0, 30, null, 'default') $$, 'RL001', 'p_limit');
select pg_temp.raises($$ select counterfoil.claim_attempts('', 1, 30, null, 'default') $$, 'RL001', 'p_worker');
select pg_temp.raises($$ select counterfoil.claim_attempts('w', 1, 30, array['a', ''], 'default') $$, 'RL001', 'p_plays[2]');

-- Another lane's runs are that lane's to recover.
select is(pg_temp.admit('l-lost', '{"releaseLane": "blue"}'), 'admitted', 'a run of another lane');
select is(pg_temp.claim(1, null, 'blue'), array['l-lost'], 'runs');
select pg_temp.lapse('l-lost');
select is(pg_temp.admit('l-late', '{"releaseLane": "blue", "deadlineAt": "2020-01-01T00:00:00Z"}'), 'admitted', 'another came too late');
select is(pg_temp.recover(), null, 'they are not recovered here');
select is(
    (select array_agg(r.run_id || ' ' || r.outcome order by r.run_id) from counterfoil.recover_attempts(10, 'blue') as r),
    array['l-late deadline_exceeded', 'l-lost requeued'], 'but there'
);
select is((select c.outcome from counterfoil.cancel_run('org', 'l-lost', null) as c), 'cancelled', 'and one ends');

select * from finish();
rollback;
