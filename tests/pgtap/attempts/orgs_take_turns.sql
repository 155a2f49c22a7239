-- SPEC 5: priority, then age; fair between orgs by construction.
begin;
\ir ../setup.psql
\ir setup.psql
select plan(43);

create function pg_temp.bulk(p_org text, p_count integer, p_more jsonb default '{}')
returns bigint language sql volatile parallel unsafe as $function$
  select count(*)
  from counterfoil.admit_launches((
    select jsonb_agg(pg_temp.launch(jsonb_build_object('orgId', p_org, 'runId', p_org || '-' || i) || p_more) order by i)
    from generate_series(1, p_count) as i
  )) as a
$function$;

-- Priority, then age, within an org, whatever the play.
select is(pg_temp.admit('old'), 'admitted', 'old');
select is(pg_temp.admit('new'), 'admitted', 'new');
select is(pg_temp.admit('urgent', '{"priority": 0, "playName": "other"}'), 'admitted', 'urgent');
select is(pg_temp.admit('late', '{"priority": 9}'), 'admitted', 'late');
update counterfoil.run_queue as q set queued_at = q.queued_at - interval '1 minute' where q.run_id = 'old';
select is(pg_temp.claim(1, array['audit', 'other']), array['urgent'], 'the most urgent first');
select is(pg_temp.claim(5, array['audit', 'other']), array['old', 'new', 'late'], 'then by age, then the least urgent');

-- A run that goes on keeps its age: what came after it does not start before it.
select is(pg_temp.bulk('age', 4), 4::bigint, 'four runs of an org');
select is(pg_temp.claim(2), array['age-1', 'age-2'], 'two of them start');
select is(
    (select array_agg(r.status order by l.run_id) from (values ('age-1'), ('age-2')) as l (run_id) cross join lateral (
        select counterfoil.release_attempt((g).org_id, (g).run_id, (g).attempt, (g).lease_id) as status from pg_temp.lease(l.run_id) as g
    ) as r), array['waiting', 'waiting'], 'and are given back'
);
select is(pg_temp.claim(4), array['age-1', 'age-2', 'age-3', 'age-4'], 'they go on before the others start');

-- One run an org and turn, round the ring.
delete from counterfoil.workers;
select is(pg_temp.bulk('big', 300), 300::bigint, 'an org with many runs');
select is(pg_temp.bulk('a', 3) + pg_temp.bulk('z', 3), 6::bigint, 'and two with a few');
select is(pg_temp.claim(3, null, 'default', 'ring'), array['a-1', 'big-1', 'z-1'], 'each org has its turn');
select is(pg_temp.claim(1, null, 'default', 'ring'), array['a-2'], 'the next claim begins after the org served last');
select is(pg_temp.claim(1, null, 'default', 'ring'), array['big-2'], 'one by one');
select is(pg_temp.claim(1, null, 'default', 'ring'), array['z-2'], 'round');
select is(
    (select array_agg(c.run_id order by c.run_id) from unnest(pg_temp.claim(8, null, 'default', 'ring')) as c (run_id)),
    array['a-3', 'big-3', 'big-4', 'big-5', 'big-6', 'big-7', 'big-8', 'z-3'], 'what the small ones leave, the big one gets'
);

-- Many small orgs beside a big one: the small runs start within two rounds of claims, whatever the batch.
select is((select sum(pg_temp.bulk('s' || i, 4)) from generate_series(1, 30) as i), 120::numeric, 'thirty orgs with four runs');
select is(cardinality(pg_temp.claim(13, null, 'default', 'ring')), 13, 'thirteen at a time, time ' || i) from generate_series(1, 10) as i;
select ok(
    count(*) filter (where c.run_id like 's%') between 120 and 130, 'of a hundred and thirty places the small runs have what they need'
)
from pg_temp.claims as c
where c.turn > (select max(b.turn) - 130 from pg_temp.claims as b);

-- Workers that claim once and are gone take the turns of one ring, too.
delete from counterfoil.run_queue;
select is(pg_temp.bulk('t' || i, 9), 9::bigint, 'three orgs, the ' || i || 'th') from generate_series(1, 2) as i;
select is(pg_temp.bulk('t3', 9), 9::bigint, 'the third');
select is(
    (select array_agg(c.runs[1] order by i) from generate_series(1, 6) as i cross join lateral (select pg_temp.claim(1, null, 'default', 'once-' || i) as runs) as c),
    array['t1-1', 't2-1', 't3-1', 't1-2', 't2-2', 't3-2'], 'each worker goes on where the last one was'
);

-- Many that fall due at once do not hide those that fall due after them.
delete from counterfoil.run_queue;
select is(pg_temp.bulk('many', 500, '{"availableAt": "2036-01-01T00:00:00Z"}'), 500::bigint, 'many for later');
select is(pg_temp.bulk('few', 2, '{"availableAt": "2036-01-01T00:00:01Z"}'), 2::bigint, 'and a few for just after');
update counterfoil.run_queue as q set ready_at = q.ready_at - interval '30 years';
select is(
    (select array_agg(r order by r) from unnest(pg_temp.claim(4, null, 'default', 'morning')) as r where r like 'few%'), array['few-1', 'few-2'],
    'all of them start with the first claim'
);

-- Orgs without room under max_active keep nobody from the turn, however many they are.
delete from counterfoil.run_queue;
delete from counterfoil.workers;
insert into counterfoil.admission_limits (org_id, scope, max_active, changed_at)
select 'full-' || i, 'org', 0, now() from generate_series(1, 130) as i;
select is((select sum(pg_temp.bulk('full-' || i, 2)) from generate_series(1, 130) as i), 260::numeric, 'orgs that may run nothing');
select is(pg_temp.bulk('ready', 2), 2::bigint, 'and one behind them');
select is(pg_temp.claim(1, null, 'default', 'patient'), '{}', 'a claim passes a hundred of them over');
select is(pg_temp.claim(1, null, 'default', 'patient'), array['ready-1'], 'and the next goes on behind them');
select is(pg_temp.claim(5, null, 'default', 'patient'), '{}', 'round the ring');
select is(pg_temp.claim(5, null, 'default', 'patient'), array['ready-2'], 'and again');
select is(counterfoil.next_attempt_due_at(null, 'default') <= clock_timestamp(), true, 'with so many, a claim has to find out');

select * from finish();
rollback;
