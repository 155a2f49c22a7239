-- Issue 4, deadlines: a queued run whose deadline is over is not begun any more, and holds up nobody.
begin;
\ir ../setup.psql
\ir setup.psql
select plan(20);

create function pg_temp.is_over(p_run_ids text)
returns void language sql volatile parallel unsafe as $function$
  update counterfoil.runs as r set deadline_at = clock_timestamp() - interval '1 second' where r.run_id like p_run_ids
$function$;
create function pg_temp.counted()
returns text language sql volatile parallel unsafe as $function$
  select format('%s queued, %s active', sum(c.queued), sum(c.active)) from counterfoil.admission_counters as c where c.org_id = 'org'
$function$;

select is(counterfoil.set_admission_limits('org', 'org', '{"maxActive": 5}') ->> 'maxActive', '5', 'places are counted');
select is(pg_temp.admit('a', '{"deadlineAt": "2036-01-01T00:00:00Z", "priority": 0}'), 'admitted', 'a run with a deadline');
select is(pg_temp.admit('b', '{"deadlineAt": "2036-01-01T00:00:00Z"}'), 'admitted', 'another');
select pg_temp.is_over('a');
select is(pg_temp.claim(), array['b'], 'the one whose deadline is over is passed over');
select is(pg_temp.facts('a'), array['run.created'], 'it has not begun');
select is(pg_temp.counted(), '1 queued, 1 active', 'and is still counted as queued');
select is(pg_temp.claim(), '{}', 'nor does it begin later');
select is(
    (select array_agg(r.run_id || ' ' || r.outcome) from counterfoil.recover_attempts(10, 'default') as r), array['a deadline_exceeded'],
    'recovery ends it'
);
select is(pg_temp.counted(), '0 queued, 1 active', 'and counts it out');

-- Its slot goes to the next of its key.
select is(pg_temp.admit(r.id, '{"concurrencyKey": "k", "deadlineAt": "2036-01-01T00:00:00Z"}'), 'admitted', 'with a key: ' || r.id)
from (values ('k1'), ('k2')) as r (id);
select pg_temp.is_over('k1');
select is(pg_temp.claim(), '{}', 'the first of a key is late');
select is((select count(*) from counterfoil.recover_attempts(10, 'default')), 1::bigint, 'it is ended');
select is(pg_temp.claim(), array['k2'], 'and the second gets the slot');

-- A wait that is over after the deadline continues nothing.
select is(
    (select s.outcome from pg_temp.lease('k2') as l
        cross join lateral counterfoil.suspend_attempt(
            (l).org_id, (l).run_id, (l).attempt, (l).lease_id, 'why', null, interval '1 hour') as s), 'suspended', 'a run sleeps'
);
select pg_temp.lapse('k2');
select pg_temp.is_over('k2');
select is(pg_temp.claim(), '{}', 'it wakes after its deadline, and does not go on');

-- Many in front: a claim passes over some of them, and goes on behind their org the next time.
select count(pg_temp.admit('late-' || i, '{"orgId": "busy", "deadlineAt": "2036-01-01T00:00:00Z"}')) from generate_series(1, 30) as i;
select pg_temp.is_over('late-%');
select is(
    pg_temp.admit('live', '{"orgId": "busy"}') || ' ' || pg_temp.admit('other', '{"orgId": "calm"}'), 'admitted admitted', 'behind thirty late ones'
);
select pg_temp.claim();
select ok(pg_temp.status('other') = 'running' or pg_temp.claim() = array['other'], 'another org is served by the second claim');
select pg_temp.claim();
select is(pg_temp.status('live'), 'running', 'and its own by the third');
select is(
    (select count(*) from counterfoil.runs as r where r.run_id like 'late-%' and r.status = 'queued'), 30::bigint, 'none of them began'
);

select * from finish();
rollback;
