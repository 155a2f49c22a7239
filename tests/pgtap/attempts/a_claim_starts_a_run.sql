-- SPEC 5: the first claim writes run.started in the same transaction; the claim says all that a worker needs.
begin;
\ir ../setup.psql
\ir setup.psql
select plan(32);

select is(pg_temp.admit('a', '{"runtimeApiBaseUrl": "https://api.example/", "runtimeLogIdentity": "origin", "maxAttempts": 2}'), 'admitted', 'a run');
select is(pg_temp.admit('b', '{"parentRunId": "a", "attemptTimeoutSeconds": 20, "deadlineAt": "2036-01-01T00:00:00Z"}'), 'admitted', 'its child');
select is(pg_temp.claim(5), array['a', 'b'], 'both are claimed in one call');
select is(pg_temp.facts('a'), array['run.created', 'run.started'], 'run.started is written');
select is(pg_temp.last_fact('a'), '{"attempt": 1}'::jsonb, 'with the attempt');
select is(
    (select array[r.status, r.attempt::text, (r.started_at is not null)::text] from counterfoil.runs as r where r.run_id = 'a'),
    array['running', '1', 'true'], 'the run runs'
);
select is((select count(*) from counterfoil.run_queue), 0::bigint, 'its place in the queue is gone');
select is(
    (select (l).context from pg_temp.lease('a') as l),
    '{"executorToken": "token", "baseUrl": "https://api.example", "rootRunId": "a", "attempt": 1, "maxAttempts": 2, "claims": 1,
      "runtimeLogIdentity": "origin"}'::jsonb,
    'the runner''s context'
);
select is(
    (select (l).context - array['timeoutAt'] from pg_temp.lease('b') as l),
    '{"executorToken": "token", "baseUrl": "https://runtime.example", "rootRunId": "a", "parentRunId": "a", "attempt": 1,
      "maxAttempts": 3, "claims": 1, "deadlineAt": "2036-01-01T00:00:00.000000Z"}'::jsonb,
    'parent, root and deadline where there are some'
);
select is((select (l).launch from pg_temp.lease('b') as l), (select l.launch from counterfoil.launches as l where l.run_id = 'b'), 'the launch');
select ok((select (l).resumed is null from pg_temp.lease('a') as l), 'it continues no wait');
select ok(
    (select (l).lease_expires_at between now() + interval '59 s' and clock_timestamp() + interval '61 s' from pg_temp.lease('a') as l),
    'the lease lasts as long as asked'
);
select is(
    (select a.lease_expires_at = a.timeout_at from counterfoil.attempts as a where a.run_id = 'b'), true,
    'but never beyond the attempt''s time-out'
);
select isnt((select (l).lease_id from pg_temp.lease('a') as l), (select (l).lease_id from pg_temp.lease('b') as l), 'each has a lease of its own');
select is(cardinality(pg_temp.claim(5)), 0, 'nothing is claimed twice');

-- Leases are clamped to 5…300 s.
select is(pg_temp.admit(r.id), 'admitted', r.id) from (values ('c'), ('d')) as r (id);
select is(
    (select round(extract(epoch from c.lease_expires_at - clock_timestamp())) from counterfoil.claim_attempts('w', 1, 1, null, 'default') as c),
    5::numeric, 'at least five seconds'
);
select is(
    (select round(extract(epoch from c.lease_expires_at - clock_timestamp())) from counterfoil.claim_attempts('w', 1, 9999, null, null) as c),
    300::numeric, 'at most three hundred; no release lane is the default one'
);

-- Plays and release lanes.
select is(pg_temp.admit('e', '{"playName": "other"}'), 'admitted', 'a run of another play');
select is(pg_temp.admit('f', '{"releaseLane": "blue"}'), 'admitted', 'one of another release lane');
select is(cardinality(pg_temp.claim(5, array['audit', 'unknown'])), 0, 'who knows neither gets neither');
select is((select array_agg(q.run_id order by q.run_id) from counterfoil.run_queue as q where q.state = 'ready'), array['e', 'f'], 'they stay queued');
select is(pg_temp.claim(5, array['audit', 'other', 'other']), array['e'], 'who knows the play gets the run');
select is(pg_temp.claim(5, null, 'blue'), array['f'], 'who serves the lane gets the other');

-- availableAt.
select is(pg_temp.admit('g', '{"availableAt": "2036-01-01T00:00:00Z"}'), 'admitted', 'a run for later');
select is(cardinality(pg_temp.claim(5)), 0, 'is not claimed before');
select is(counterfoil.next_attempt_due_at(null, 'default'), '2036-01-01T00:00:00Z'::timestamptz, 'its time is known');
select is(counterfoil.next_attempt_due_at(array['other'], 'default'), null, 'to those who know its play');
select pg_temp.lapse('g');
select ok(counterfoil.next_attempt_due_at(array['audit'], 'default') < clock_timestamp(), 'when it has come');
select is(pg_temp.claim(5), array['g'], 'it is claimed');

select is(
    (select array[w.worker, w.release_lane, w.claim_cursor] from counterfoil.workers as w where w.worker = 'worker'),
    array['worker', 'default', 'org'], 'the worker is on record'
);

select * from finish();
rollback;
