-- SPEC 4: at most N runs of one concurrency key execute at once; the rest start in order as slots free.
begin;
\ir ../setup.psql
\ir ../attempts/setup.psql
select plan(36);

create function pg_temp.key(p_key text default 'k')
returns text language sql stable parallel unsafe as $function$
  select k.in_use || ' of ' || k.unended from counterfoil.concurrency_keys as k where k.org_id = 'org' and k.concurrency_key = p_key
$function$;

select is(pg_temp.admit(r.id, '{"concurrencyKey": "k"}'), 'admitted', r.id) from (values ('a'), ('b'), ('c')) as r (id);
select is(pg_temp.admit('d', '{"concurrencyKey": "k", "priority": 1}'), 'admitted', 'd, more urgent');
select is(pg_temp.admit('free'), 'admitted', 'one without a key');
select is(pg_temp.admit('other', '{"concurrencyKey": "k", "orgId": "org-2"}'), 'admitted', 'the same key of another org');
select is(pg_temp.key(), '1 of 4', 'one slot is taken');
select is(
    (select array_agg(q.run_id order by q.run_id) from counterfoil.run_queue as q where q.state = 'held'), array['b', 'c', 'd'],
    'the rest is held'
);
select is(
    (select array_agg(c.run_id order by c.run_id) from unnest(pg_temp.claim(10)) as c (run_id)), array['a', 'free', 'other'],
    'one run of each key is claimed'
);
select is(cardinality(pg_temp.claim(10)), 0, 'and no other while it runs');
select ok(pg_temp.fail_run('a') ->> 'outcome' = 'retry_scheduled', 'between attempts');
select is(pg_temp.key(), '1 of 4', 'it keeps its slot');
select pg_temp.lapse('a');
select is(pg_temp.claim(10), array['a'], 'and is claimed again itself');
select is(
    (select s.outcome from pg_temp.lease('a') as l
        cross join lateral counterfoil.suspend_attempt((l).org_id, (l).run_id, (l).attempt, (l).lease_id, 'why', 'event') as s),
    'suspended', 'it waits for an event'
);
select is(cardinality(pg_temp.claim(10)), 0, 'no other run of the key comes between');
select is((select r.outcome from counterfoil.resume_run('org', 'a', 'event', null, 's1') as r), 'resumed', 'resumed');
select is(pg_temp.claim(10), array['a'], 'it goes on with its slot');
select ok(pg_temp.complete('a') ->> 'outcome' = 'completed', 'when it ends');
select is(pg_temp.claim(10), array['d'], 'the most urgent held run starts');
select is(pg_temp.key(), '1 of 3', 'still one slot');
select is((select c.outcome from counterfoil.cancel_run('org', 'b', null) as c), 'cancelled', 'a held run is cancelled');
select is(pg_temp.key(), '1 of 2', 'it had no slot to give back');

-- A killed holder leaks no slot.
select pg_temp.lapse('d');
update counterfoil.runs as r set max_attempts = 1 where r.run_id = 'd';
select is((select r.outcome from counterfoil.recover_attempts(10, 'default') as r), 'failed', 'its last attempt is lost');
select is(pg_temp.claim(10), array['c'], 'the next starts');
select ok(pg_temp.complete('c') ->> 'outcome' = 'completed', 'the last one ends');
select is(
    (select count(*) from counterfoil.concurrency_keys as k where k.org_id = 'org'), 0::bigint, 'no row is left for a key without runs'
);

-- A run for later takes no slot while it sleeps.
select is(
    pg_temp.admit('later', '{"concurrencyKey": "k", "availableAt": "2036-01-01T00:00:00Z"}'), 'admitted', 'a keyed run for later'
);
select is(pg_temp.admit('now', '{"concurrencyKey": "k"}'), 'admitted', 'one for now');
select is(pg_temp.claim(10), array['now'], 'the sleeper does not hold it up');
select pg_temp.lapse('later');
select is(cardinality(pg_temp.claim(10)), 0, 'awake, it gets in line');
select is((select q.state from counterfoil.run_queue as q where q.run_id = 'later'), 'held', 'held');
select ok(pg_temp.complete('now') ->> 'outcome' = 'completed', 'until the slot is free');
select is(pg_temp.claim(10), array['later'], 'then it starts');

-- N of them, where the limits say so.
insert into counterfoil.admission_limits (org_id, scope, max_per_concurrency_key, changed_at) values ('org', 'org', 2, now());
select is(
    (
        select array_agg(a.outcome)
        from counterfoil.admit_launches((
            select jsonb_agg(pg_temp.launch(jsonb_build_object('runId', 'n' || i, 'concurrencyKey', 'n'))) from generate_series(1, 4) as i
        )) as a
    ),
    array['admitted', 'admitted', 'admitted', 'admitted'], 'four runs of a key in one call'
);
select is(pg_temp.claim(10), array['n1', 'n2'], 'two at once');
update counterfoil.admission_limits as l set max_per_concurrency_key = 3 where l.org_id = 'org';
select counterfoil.recount_admission('org', 'org');
select is(pg_temp.claim(10), array['n3'], 'one more when the limit is raised');

select * from finish();
rollback;
