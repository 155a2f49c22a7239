-- SPEC 5: a retryable error with attempts left schedules the next attempt (backoff with jitter), else the run ends.
begin;
\ir ../setup.psql
\ir setup.psql
select plan(52);

-- Seconds from now to a time.
create function pg_temp.wait_of(p_answer jsonb)
returns numeric language sql volatile parallel unsafe as $function$
  select extract(epoch from (p_answer ->> 'next_attempt_at')::timestamptz - clock_timestamp())
$function$;

select is(pg_temp.admit('a', '{"maxAttempts": 3}'), 'admitted', 'a run with three attempts');
select is(pg_temp.claim(), array['a'], 'attempt 1');
create temporary table first_answer on commit drop as
select pg_temp.fail_run('a', '{"error": {"message": "boom", "type": "E", "code": "c", "details": [1]}, "terminalLogLines": ["x"],
  "terminalProgressEvents": [{"type": "run.note", "done": 1}], "terminalWorkCounterSegment": {"rows": 7}}') as answer;
select is(
    (select f.answer - 'next_attempt_at' from first_answer as f),
    '{"run_status": "waiting", "outcome": "retry_scheduled", "event_id": null, "replayed": false}'::jsonb, 'a retry is scheduled'
);
select ok((select pg_temp.wait_of(f.answer) between 0 and 1 from first_answer as f), 'after a second at most');
select is(
    pg_temp.fail_run('a', '{"error": {"message": "boom", "type": "E", "code": "c", "details": [1.0]}, "terminalLogLines": ["x"],
      "terminalProgressEvents": [{"type": "run.note", "done": 1}], "terminalWorkCounterSegment": {"rows": 7}}'),
    (select f.answer || '{"replayed": true}' from first_answer as f), 'a repeat answers as the first did'
);
select pg_temp.raises($$ select pg_temp.complete('a') $$, 'RL003', 'attempt_answer', 'a completion after it is a conflict');
select is(pg_temp.facts('a'), array['run.created', 'run.started', 'run.events', 'runner.logs'], 'what came along is kept, once');
select is(
    (select jsonb_agg(jsonb_build_array(e.event ->> 'type', e.event -> 'data') order by e.place)
     from counterfoil.outbox as o
     cross join lateral jsonb_array_elements(
        counterfoil.project_events(o.event_type, o.event_id, o.run_id, o.seq, o.created_at, o.payload)
     ) with ordinality as e (event, place)
     where o.run_id = 'a' and o.event_type = 'run.events'),
    '[["run.note", {"done": 1}],
      ["log.appended", {"channel": "log", "producerAttempt": 1, "lines": ["x"], "lineContexts": [null]}],
      ["attempt.failed", {"attempt": 1, "error": {"message": "boom", "type": "E", "code": "c", "details": [1]}, "workCounterSegment": {"rows": 7}}]]'::jsonb,
    'as events of the ledger'
);
select is(
    (select o.payload from counterfoil.outbox as o where o.run_id = 'a' and o.event_type = 'runner.logs'),
    '{"searchOnly": true, "deferredProjection": true, "producerAttempt": 1, "lines": ["x"], "lineContexts": [null], "lineIds": null}'::jsonb,
    'and the lines as entries of the journal'
);
select is(
    (select array[r.status, r.wait_kind, r.error ->> 'message'] from counterfoil.runs as r where r.run_id = 'a'), array['waiting', 'retry', 'boom'],
    'the run waits and keeps the error'
);
select is(cardinality(pg_temp.claim()), 0, 'it is not claimed before its time');
select pg_temp.lapse('a');
select is(pg_temp.claim(), array['a'], 'but after');
select is((select array[(l).attempt, ((l).context ->> 'attempt')::integer] from pg_temp.lease('a') as l), array[2, 2], 'as attempt 2');
select is(pg_temp.facts('a'), array['run.created', 'run.started', 'run.events', 'runner.logs'], 'run.started is written once');
select pg_temp.raises(
    $$ select counterfoil.fail_attempt('org', 'a', 1, (select c.lease_id from pg_temp.claims as c where c.run_id = 'a' and c.attempt = 1),
        '{"error": {"message": "other"}}') $$, 'RL003', 'attempt_answer', 'attempt 1 stays answered'
);
select is(pg_temp.fail_run('a') ->> 'outcome', 'retry_scheduled', 'attempt 2 fails');
select pg_temp.lapse('a');
select is(pg_temp.claim(), array['a'], 'attempt 3');
select is(
    pg_temp.fail_run('a', '{"error": {"message": "boom"}, "result": {"partial": 1}, "sandboxCrashDiagnostic": {"exit": 137}}') - 'event_id',
    '{"run_status": "failed", "outcome": "failed", "next_attempt_at": null, "replayed": false}'::jsonb, 'the last failure ends the run'
);
select is(
    pg_temp.last_fact('a'),
    '{"producerAttempt": 3, "error": {"message": "boom"}, "result": {"partial": 1}, "sandboxCrashDiagnostic": {"exit": 137},
      "terminalLogLines": [], "terminalLogContexts": []}'::jsonb,
    'with its error, result and crash diagnostic'
);
select is(
    pg_temp.facts('a'), array['run.created', 'run.started', 'run.events', 'runner.logs', 'run.failed'],
    'as run.failed; an attempt that brought nothing else left nothing'
);
select is(
    (select jsonb_agg(jsonb_build_array(t.status, t.error ->> 'message', t.crash_diagnostic) order by t.attempt) from counterfoil.attempts as t),
    '[["failed", "boom", null], ["failed", "boom", null], ["failed", "boom", {"exit": 137}]]'::jsonb, 'each attempt keeps its own'
);

-- What is not retried.
select is(pg_temp.admit('b'), 'admitted', 'b');
select is(pg_temp.claim(), array['b'], 'b runs');
select is(pg_temp.fail_run('b', '{"error": {"message": "no", "retryable": false}}') ->> 'outcome', 'failed', 'an error that says so');
select is(pg_temp.admit('c', '{"retryPolicy": {"nonRetryableErrors": ["ValueError", "E42"]}}'), 'admitted', 'c');
select is(pg_temp.claim(), array['c'], 'c runs');
select is(pg_temp.fail_run('c', '{"error": {"message": "no", "type": "ValueError"}}') ->> 'outcome', 'failed', 'an error the launch names');
select is(pg_temp.admit('d', '{"deadlineAt": "2036-01-01T00:00:00Z"}'), 'admitted', 'd');
select is(pg_temp.claim(), array['d'], 'd runs');
update counterfoil.runs as r set deadline_at = clock_timestamp() + interval '100 ms' where r.run_id = 'd';
select is(pg_temp.fail_run('d') ->> 'outcome', 'failed', 'a retry that the deadline would overtake');

-- Backoff: doubling from the base to the maximum; the share left to chance is the policy's.
select is(pg_temp.admit('e', '{"retryPolicy": {"backoffBaseMs": 10000, "backoffMaxMs": 30000, "jitter": 0}, "maxAttempts": 4}'), 'admitted', 'e');
create function pg_temp.next_wait(p_run text)
returns numeric language plpgsql volatile parallel unsafe as $function$
begin
  perform pg_temp.lapse(p_run);
  perform pg_temp.claim();
  return round(pg_temp.wait_of(pg_temp.fail_run(p_run)));
end
$function$;
select is(pg_temp.next_wait('e'), w.wait, w.wait || ' seconds') from (values (10::numeric), (20), (30)) as w (wait);
select ok(
    (select min(extract(epoch from b.wait)) >= 1 and max(extract(epoch from b.wait)) <= 2 and count(distinct b.wait) > 90
        from (select counterfoil.attempt_backoff(2, 1000, 300000, 0.5) as wait from generate_series(1, 100)) as b),
    'with jitter, waits lie between half and all of the backoff'
);
select is(counterfoil.attempt_backoff(1000, 1000, 300000, 0), interval '300 seconds', 'no number of attempts overflows it');

-- A cancelled run's holder acknowledges.
select is(pg_temp.admit('f'), 'admitted', 'f');
select is(pg_temp.claim(), array['f'], 'f runs');
select is((select c.outcome from counterfoil.cancel_run('org', 'f', 'enough') as c), 'requested', 'f is to be cancelled');
select is(
    pg_temp.fail_run('f', '{"error": {"message": "stopped", "code": "cancelled"}}') - 'event_id',
    '{"run_status": "cancelled", "outcome": "cancelled", "next_attempt_at": null, "replayed": false}'::jsonb, 'its holder ends it'
);
select is(pg_temp.last_fact('f') ->> 'reason', 'enough', 'with the reason given');

-- Bad input.
select pg_temp.raises(format('select pg_temp.fail_run(%L, %L)', 'e', b.failure), 'RL001', 'p_failure.' || b.path, b.failure)
from (
    values
        ('error', '{}'), ('error', '{"error": "boom"}'), ('error.message', '{"error": {}}'), ('error.code', '{"error": {"message": "m", "code": 5}}'),
        ('error.retryable', '{"error": {"message": "m", "retryable": "no"}}'),
        ('preserveRunnerTerminal', '{"error": {"message": "m"}, "preserveRunnerTerminal": 1}')
) as b (path, failure);

-- The error counts towards the size of the fact.
update counterfoil.settings as s set value = '2048' where s.name = 'fact_max_bytes';
select pg_temp.admit('large');
select pg_temp.claim();
select pg_temp.raises(
    $$ select pg_temp.fail_run('large', jsonb_build_object('error', jsonb_build_object('message', 'm', 'details', repeat('x', 2048)))) $$,
    'RL008', 'p_failure', 'too large an error'
);

-- An error often quotes what a play was called with.
select is(pg_temp.admit('s', '{"maxAttempts": 1}'), 'admitted', 'a run whose error will hold secrets');
select is(pg_temp.claim(), array['s'], 'is claimed');
create temporary table secret on commit drop as
select '{"error": {"message": "postgres://u:hunter2@h/db is down", "details": {"password": "hunter2", "host": "h"}}}'::jsonb as failure;
select is(
    (select jsonb_build_array(a.answer -> 'outcome', b.answer -> 'replayed') from secret as f
     cross join lateral (select pg_temp.fail_run('s', f.failure) as answer offset 0) as a
     cross join lateral (select pg_temp.fail_run('s', f.failure) as answer where a.answer is not null offset 0) as b),
    '["failed", true]'::jsonb, 'fails, and again is a repeat'
);
select is(
    (
        select jsonb_build_array(r.error, a.error, o.payload -> 'error')
        from counterfoil.runs as r
        inner join counterfoil.attempts as a on a.run_id = r.run_id
        inner join counterfoil.outbox as o on o.event_id = r.terminal_event_id
        where r.run_id = 's'
    ),
    (
        select jsonb_build_array(e.error, e.error, e.error)
        from (
            select '{"message": "postgres://[redacted]@h/db is down", "details": {"password": "[redacted]", "host": "h"}}'::jsonb as error
        ) as e
    ),
    'nothing of them is kept'
);

select * from finish();
rollback;
