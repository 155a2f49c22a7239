-- SPEC 5: a public wait frees the worker; an event or the wake time makes the run claimable as the same attempt.
begin;
\ir ../setup.psql
\ir setup.psql
select plan(62);

create function pg_temp.suspend(p_run text, p_event text default null, p_after interval default null, p_wait text default null)
returns jsonb language sql volatile parallel unsafe as $function$
  select to_jsonb(s)
  from pg_temp.lease(p_run) as l
  cross join lateral counterfoil.suspend_attempt((l).org_id, (l).run_id, (l).attempt, (l).lease_id, 'why', p_event, p_after, p_wait) as s
$function$;
create function pg_temp.resume(p_run text, p_event text, p_payload jsonb, p_signal text)
returns text language sql volatile parallel unsafe as $function$
  select r.outcome || ', ' || r.status from counterfoil.resume_run('org', p_run, p_event, p_payload, p_signal) as r
$function$;

-- By an event.
select is(pg_temp.admit('a', '{"attemptTimeoutSeconds": 3600}'), 'admitted', 'a run');
select is(pg_temp.claim(), array['a'], 'runs');
select is(pg_temp.suspend('a', 'approval', null, 'w1'), '{"outcome": "suspended", "resumed": null}'::jsonb, 'and waits for an event');
select is(pg_temp.suspend('a', 'approval', null, 'w1'), '{"outcome": "suspended", "resumed": null}'::jsonb, 'a repeat answers the same');
select is(
    pg_temp.last_fact('a'), '{"attempt": 1, "waitId": "w1", "reason": "why", "event": "approval", "wakeAt": null}'::jsonb, 'run.waiting says for what'
);
select is(pg_temp.facts('a'), array['run.created', 'run.started', 'run.waiting'], 'once');
select is(
    (select array[r.status, r.wait_kind, r.wait_event, r.wait_reason] from counterfoil.runs as r), array['waiting', 'public', 'approval', 'why'],
    'the run says it too'
);
select is(
    (select array[a.status, a.lease_expires_at::text, a.timeout_at::text] from counterfoil.attempts as a), array['waiting', null, null], 'its lease is over'
);
select is(cardinality(pg_temp.claim()), 0, 'nobody claims it');
select is(counterfoil.next_attempt_due_at(null, 'default'), null, 'and nobody need look');
select pg_temp.raises($$ select pg_temp.complete('a') $$, 'RL004', 'attempt_lease_not_current', 'its worker is free of it');
select is(pg_temp.resume('a', 'other', '1', 's0'), 'stored, waiting', 'another event is kept for another wait');
select is(pg_temp.resume('a', null, '1', 's-unnamed'), 'stored, waiting', 'so is an unnamed resume');
select is(pg_temp.resume('a', 'approval', '{"by": "ann"}', 's1'), 'resumed, waiting', 'the event ends the wait');
select is(pg_temp.resume('a', 'approval', '{"by": "ann"}', 's1'), 'replayed, waiting', 'once');
select pg_temp.raises($$ select pg_temp.resume('a', 'approval', '{"by": "bob"}', 's1') $$, 'RL003', 'signal', 'the same id with another payload');
select pg_temp.raises($$ select pg_temp.resume('a', 'other', '{"by": "ann"}', 's1') $$, 'RL003', 'signal', 'or another event');
select is(pg_temp.resume('a', 'approval', '{"by": "bob"}', 's2'), 'stored, waiting', 'another approval is for the next wait');
select is(pg_temp.claim(1, null, 'default', 'other'), array['a'], 'any worker claims it');
select is(
    (select jsonb_build_array((l).attempt, (l).resumed, (l).context -> 'claims') from pg_temp.lease('a') as l),
    '[1, {"eventName": "approval", "payload": {"by": "ann"}, "timedOut": false}, 2]'::jsonb, 'as the same attempt, with the payload'
);
select is(
    pg_temp.last_fact('a'), '{"attempt": 1, "waitId": "w1", "eventName": "approval", "timedOut": false}'::jsonb, 'run.resumed says by what, not the payload'
);
select ok((select a.timeout_at > clock_timestamp() + interval '59 minutes' from counterfoil.attempts as a), 'its time starts anew');
select is((select r.wait_kind from counterfoil.runs as r), null, 'the wait is over');

-- A later attempt that comes to the same wait gets the same answer.
select is(
    pg_temp.suspend('a', 'approval', null, 'w1'),
    '{"outcome": "resumed_already", "resumed": {"eventName": "approval", "payload": {"by": "ann"}, "timedOut": false}}'::jsonb, 'the same wait again'
);
-- A resume before its wait is not lost.
select is(
    pg_temp.suspend('a', 'approval', null, 'w2'),
    '{"outcome": "resumed_already", "resumed": {"eventName": "approval", "payload": {"by": "bob"}, "timedOut": false}}'::jsonb, 'the next wait takes the stored one'
);
select is(pg_temp.facts('a'), array['run.created', 'run.started', 'run.waiting', 'run.resumed'], 'without waiting in public');
select pg_temp.lapse('a');
select is((select r.outcome from counterfoil.recover_attempts(9, 'default') as r), 'requeued', 'the attempt is lost');
select is(pg_temp.claim(), array['a'], 'another begins');
select ok((select (l).attempt = 2 and (l).resumed is null from pg_temp.lease('a') as l), 'from the start');
select is(pg_temp.suspend('a', 'approval', null, 'w2') -> 'resumed' -> 'payload' ->> 'by', 'bob', 'its waits end as they did');
select is(pg_temp.suspend('a', null, null, null) ->> 'outcome', 'resumed_already', 'an unnamed wait takes the unnamed resume');
select ok(pg_temp.complete('a') ->> 'outcome' = 'completed', 'it completes');
select pg_temp.raises($$ select pg_temp.resume('a', 'approval', null, 's9') $$, 'RL005', 'run_ended', 'nothing resumes it any more');
select is(pg_temp.resume('a', 'approval', '{"by": "ann"}', 's1'), 'replayed, completed', 'but a repeat is a repeat');

-- By time.
select is(pg_temp.admit('t'), 'admitted', 'a run');
select is(pg_temp.claim(), array['t'], 'runs');
select is(pg_temp.suspend('t', 'approval', interval '1 hour', 'w1') ->> 'outcome', 'suspended', 'and waits an hour at most');
select ok(counterfoil.next_attempt_due_at(null, 'default') between now() + interval '59 minutes' and clock_timestamp() + interval '1 hour', 'its time is known');
select is(cardinality(pg_temp.claim()), 0, 'it sleeps');
select pg_temp.lapse('t');
select is(pg_temp.claim(), array['t'], 'and wakes');
select is(
    (select (l).resumed from pg_temp.lease('t') as l), '{"eventName": "approval", "payload": null, "timedOut": true}'::jsonb, 'the wait timed out'
);
select is(pg_temp.resume('t', 'approval', null, 'late'), 'stored, running', 'an event that comes later is for a later wait');
select is(pg_temp.suspend('t', 'approval', interval '1 hour', 'w1') -> 'resumed' ->> 'timedOut', 'true', 'the wait stays timed out');

-- The event and the clock: who comes first wins.
select is(pg_temp.suspend('t', 'approval', interval '1 hour', 'w2') ->> 'outcome', 'resumed_already', 'the stored event');
select is(pg_temp.suspend('t', 'go', interval '1 hour', 'w3') ->> 'outcome', 'suspended', 'another wait');
select is(pg_temp.resume('t', 'go', '"x"', 'go'), 'resumed, waiting', 'is ended by its event');
select pg_temp.lapse('t');
select is(pg_temp.claim(), array['t'], 'though its time has passed too');
select is((select (l).resumed ->> 'timedOut' from pg_temp.lease('t') as l), 'false', 'the event counts');
select is(pg_temp.suspend('t', null, interval '0') ->> 'outcome', 'suspended', 'a wait of no time');
select is(pg_temp.claim(), array['t'], 'is over at once');

-- Cancelled.
select is(pg_temp.suspend('t', 'never', null, 'w5') ->> 'outcome', 'suspended', 'it waits again');
select is((select c.outcome from counterfoil.cancel_run('org', 't', 'enough') as c), 'cancelled', 'a waiting run is cancelled now');
select is((select a.status from counterfoil.attempts as a where a.run_id = 't'), 'cancelled', 'with its attempt');
select is(pg_temp.admit('c'), 'admitted', 'a run');
select is(pg_temp.claim(), array['c'], 'runs');
select is((select c.outcome from counterfoil.cancel_run('org', 'c', 'enough') as c), 'requested', 'is to be cancelled');
select is(pg_temp.suspend('c', 'go') ->> 'outcome', 'cancelled', 'it does not wait any more');

-- Bad input.
select pg_temp.raises($$ select pg_temp.suspend('c', '') $$, 'RL001', 'p_event_name');
select pg_temp.raises($$ select pg_temp.suspend('c', null, interval '-1 s') $$, 'RL001', 'p_wake_after');
select pg_temp.raises($$ select pg_temp.suspend('c', null, null, repeat('x', 1001)) $$, 'RL001', 'p_wait_id');
select pg_temp.raises($$ select pg_temp.resume('c', null, null, null) $$, 'RL001', 'p_signal_id');
select pg_temp.raises($$ select pg_temp.resume('nobody', null, null, 's') $$, 'RL002', 'run_not_found');

select * from finish();
rollback;
