-- SPEC 5: a detached runner records its own terminal; races between runner, worker and hard ceiling.
begin;
\ir ../setup.psql
\ir setup.psql
select plan(80);

create function pg_temp.park(p_run text, p_after interval default null)
returns text language sql volatile parallel unsafe as $function$
  select p.outcome || coalesce(' ' || (p.runner_terminal ->> 'status'), '')
  from pg_temp.lease(p_run) as l
  cross join lateral counterfoil.park_attempt((l).org_id, (l).run_id, (l).attempt, (l).lease_id, p_after) as p
$function$;
create function pg_temp.record(p_run text, p_terminal jsonb)
returns text language sql volatile parallel unsafe as $function$
  select r.outcome || ', ' || r.run_status
  from pg_temp.lease(p_run) as l
  cross join lateral counterfoil.record_runner_terminal((l).org_id, (l).run_id, (l).attempt, (l).lease_id, p_terminal) as r
$function$;
create function pg_temp.direct(p_run text, p_terminal jsonb)
returns jsonb language sql volatile parallel unsafe as $function$
  select to_jsonb(r) - 'event_id'
  from pg_temp.lease(p_run) as l
  cross join lateral counterfoil.direct_complete_runner_terminal((l).org_id, (l).run_id, (l).attempt, (l).lease_id, p_terminal) as r
$function$;
create function pg_temp.start(p_run text, p_more jsonb default '{}')
returns text language sql volatile parallel unsafe as $function$
  select pg_temp.admit(p_run, p_more) || array_to_string(pg_temp.claim(), ',')
$function$;

-- Parked: transport only, no public wait.
select is(pg_temp.start('a'), 'admitteda', 'a run');
select is(pg_temp.park('a'), 'parked', 'its worker parks behind the runner');
select is(pg_temp.park('a'), 'parked', 'a repeat answers the same');
select is(pg_temp.last_fact('a'), '{"kind": "detached_runner", "attempt": 1}'::jsonb, 'run.waiting is transport only');
select is((select array[l.priority::bigint, l.wait_seq] from counterfoil.lanes as l where l.run_id = 'a'), array[0, null]::bigint[], 'it is no public wait');
select is((select array[r.status, r.wait_kind] from counterfoil.runs as r where r.run_id = 'a'), array['waiting', 'detached_runner'], 'the run waits');
select is(cardinality(pg_temp.claim()), 0, 'nobody claims it');
select is(pg_temp.record('a', '{"status": "completed", "result": {"n": 1}}'), 'recorded, waiting', 'the runner records its terminal');
select is(pg_temp.record('a', '{"status": "completed", "result": {"n": 1.0}}'), 'replayed, waiting', 'a repeat changes nothing');
select pg_temp.raises($$ select pg_temp.record('a', '{"status": "completed", "result": {"n": 2}}') $$, 'RL003', 'runner_terminal', 'a runner ends once');
select ok(
    (select a.runner_terminal_at between a.claimed_at and clock_timestamp() from counterfoil.attempts as a where a.run_id = 'a'), 'accepted at the database''s time'
);
select is(pg_temp.facts('a'), array['run.created', 'run.started', 'run.waiting'], 'nothing has ended yet');
select is(pg_temp.claim(), array['a'], 'a worker claims it');
select is(
    (select ((l).context -> 'runnerTerminal') - 'acceptedAt'::text from pg_temp.lease('a') as l),
    '{"status": "completed", "terminal": {"status": "completed", "result": {"n": 1}}}'::jsonb, 'and is told'
);
select is(pg_temp.facts('a'), array['run.created', 'run.started', 'run.waiting'], 'no run.resumed, for nobody was told of a wait');
select is(pg_temp.complete('a', '{"result": {"n": 1}}') ->> 'outcome', 'completed', 'it ends the run with it');

-- Direct.
select is(pg_temp.start('b'), 'admittedb', 'a run');
select is(pg_temp.park('b'), 'parked', 'is parked');
select is(
    pg_temp.direct('b', '{"status": "completed", "result": 1, "terminalLogLines": ["x"], "terminalLogIds": ["i"]}'),
    '{"run_status": "completed", "outcome": "completed", "replayed": false}'::jsonb, 'the runner ends it'
);
select is(
    pg_temp.direct('b', '{"status": "completed", "result": 1, "terminalLogLines": ["x"], "terminalLogIds": ["i"]}'),
    '{"run_status": "completed", "outcome": "completed", "replayed": true}'::jsonb, 'a repeat answers the same'
);
select is(
    pg_temp.last_fact('b'),
    '{"producerAttempt": 1, "result": 1, "terminalLogLines": ["x"], "terminalLogContexts": [null], "terminalLogIds": ["i"]}'::jsonb, 'with all it said'
);
select is((select a.runner_terminal_status from counterfoil.attempts as a where a.run_id = 'b'), 'completed', 'its terminal is kept');
select pg_temp.raises($$ select pg_temp.direct('b', '{"status": "failed", "error": {"message": "m"}}') $$, 'RL003', 'attempt_answer', 'another end is refused');
select pg_temp.raises($$ select pg_temp.complete('b') $$, 'RL003', 'attempt_answer', 'the worker is too late');
select is(pg_temp.start('b2'), 'admittedb2', 'a run whose worker is still there');
select is(
    pg_temp.direct('b2', '{"status": "failed", "error": {"message": "m"}}') ->> 'outcome', 'failed', 'is ended by its runner, without another attempt'
);

-- The worker's failure does not overwrite it.
select is(pg_temp.start('c'), 'admittedc', 'a run');
select is(pg_temp.record('c', '{"status": "failed", "error": {"message": "real"}}'), 'recorded, running', 'the runner failed');
select pg_temp.raises(
    $$ select pg_temp.fail_run('c', '{"error": {"message": "ceiling"}, "preserveRunnerTerminal": true}') $$, 'RL005', 'runner_terminal_recorded',
    'the ceiling does not overwrite it'
);
select is(pg_temp.park('c'), 'runner_ended failed', 'who would park is told');
select is(pg_temp.fail_run('c', '{"error": {"message": "real", "retryable": false}}') ->> 'outcome', 'failed', 'the worker ends the run');

-- A resumable one is superseded by the ceiling.
select is(pg_temp.start('d'), 'admittedd', 'a run');
select is(pg_temp.park('d', interval '1 hour'), 'parked', 'parked for an hour at most');
select is(pg_temp.record('d', '{"status": "suspended"}'), 'recorded, waiting', 'its runner suspends itself');
select is(pg_temp.claim(), array['d'], 'a worker claims it');
select is(pg_temp.record('d', '{"status": "suspended", "result": 2}'), 'recorded, running', 'a suspended terminal may be replaced');
select is(
    pg_temp.fail_run('d', '{"error": {"message": "ceiling", "retryable": false}, "preserveRunnerTerminal": true}') ->> 'outcome', 'failed', 'by the ceiling too'
);
select pg_temp.raises($$ select pg_temp.record('d', '{"status": "completed"}') $$, 'RL004', 'attempt_lease_not_current', 'then the runner is too late');

-- One that was recorded before the claim was told to who claimed: he is not overtaken by it.
select is(pg_temp.start('told'), 'admittedtold', 'a run');
select is(pg_temp.park('told'), 'parked', 'parked');
select is(pg_temp.record('told', '{"status": "completed"}'), 'recorded, waiting', 'its runner completes');
select is(pg_temp.claim(), array['told'], 'a worker claims it and is told');
select is(
    pg_temp.fail_run('told', '{"error": {"message": "no use", "retryable": false}, "preserveRunnerTerminal": true}') ->> 'outcome',
    'failed', 'and may fail it all the same'
);

-- The ceiling itself.
select is(pg_temp.start('e'), 'admittede', 'a run');
select is(pg_temp.park('e', interval '1 hour'), 'parked', 'parked');
select pg_temp.lapse('e');
select is(pg_temp.claim(), array['e'], 'its time over, a worker claims it');
select ok((select (l).context -> 'runnerTerminal' is null from pg_temp.lease('e') as l), 'without a terminal');
select pg_temp.raises(
    $$ select counterfoil.record_runner_terminal('org', 'e', 1, (select c.lease_id from pg_temp.claims as c where c.run_id = 'e' limit 1), '{"status": "completed"}') $$,
    'RL004', 'attempt_lease_not_current', 'the runner''s lease is replaced'
);

-- Nobody left to hear it.
select is(pg_temp.start('f'), 'admittedf', 'a run');
select is(pg_temp.record('f', '{"status": "completed", "result": 5}'), 'recorded, running', 'whose runner completed');
select pg_temp.lapse('f');
select is((select r.outcome from counterfoil.recover_attempts(9, 'default') as r where r.run_id = 'f'), 'completed', 'and whose worker is lost');
select is(pg_temp.last_fact('f') ->> 'result', '5', 'ends with the runner''s result');

-- What was accepted stays so when less is allowed afterwards: no recovery and no cancellation may fail of it.
select is(pg_temp.start(r), 'admitted' || r, 'a run') from unnest(array['l', 'm']) as r;
select is(pg_temp.park('m'), 'parked', 'one parked');
select is(
    pg_temp.record(r.run, jsonb_build_object('status', 'completed', 'result', repeat('x', 2000))), 'recorded, ' || r.status, 'with a long result'
)
from (values ('l', 'running'), ('m', 'waiting')) as r (run, status);
update counterfoil.settings as s set value = '1024' where s.name in ('result_max_bytes', 'fact_max_bytes');
select pg_temp.lapse('l');
select is((select r.outcome from counterfoil.recover_attempts(9, 'default') as r where r.run_id = 'l'), 'completed', 'is recovered with it');
select is((select c.status from counterfoil.cancel_run('org', 'm', null) as c), 'completed', 'or found ended');
update counterfoil.settings as s set value = '1048576' where s.name in ('result_max_bytes', 'fact_max_bytes');

-- Cancelled while parked.
select is(pg_temp.start('g'), 'admittedg', 'a run');
select is(pg_temp.park('g'), 'parked', 'parked');
select is((select c.outcome from counterfoil.cancel_run('org', 'g', 'enough') as c), 'cancelled', 'is cancelled now');
select pg_temp.raises($$ select pg_temp.direct('g', '{"status": "completed"}') $$, 'RL004', 'attempt_lease_not_current', 'its runner is too late');
select is(pg_temp.start('h'), 'admittedh', 'a run');
select is(pg_temp.park('h'), 'parked', 'parked');
select is(pg_temp.record('h', '{"status": "completed"}'), 'recorded, waiting', 'whose runner had completed');
select is(
    (select c.outcome || ', ' || c.status from counterfoil.cancel_run('org', 'h', 'enough') as c), 'already_ended, completed', 'is not cancelled any more'
);
select is(pg_temp.start('i'), 'admittedi', 'a run');
select is((select c.outcome from counterfoil.cancel_run('org', 'i', 'enough') as c), 'requested', 'to be cancelled');
select is(pg_temp.direct('i', '{"status": "failed", "error": {"message": "stopped"}}') ->> 'outcome', 'cancelled', 'is, when its runner fails');
select is(pg_temp.start('j'), 'admittedj', 'a run');
select is((select c.outcome from counterfoil.cancel_run('org', 'j', 'enough') as c), 'requested', 'to be cancelled');
select is(pg_temp.park('j'), 'cancelled', 'does not park any more');

-- Bad input.
select is(pg_temp.start('k'), 'admittedk', 'a run');
select pg_temp.raises(format('select pg_temp.%s(%L, %L)', b.f, 'k', b.terminal), 'RL001', 'p_terminal' || b.path, b.terminal)
from (
    values
        ('record', '.status', '{}'), ('record', '.status', '{"status": "done"}'), ('record', '.error', '{"status": "failed"}'),
        ('record', '', '[]'), ('direct', '.status', '{"status": "suspended"}'),
        ('direct', '.terminalLogIds', '{"status": "completed", "terminalLogIds": ["a"]}')
) as b (f, path, terminal);

select * from finish();
rollback;
