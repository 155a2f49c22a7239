-- SPEC 5: many attempts at once; each answer says ok, lost or cancel_requested.
begin;
\ir ../setup.psql
\ir setup.psql
select plan(19);

create function pg_temp.beat(p_runs text[], p_seconds integer default 120)
returns text[] language sql volatile parallel unsafe as $function$
  select array_agg(h.run_id || ' ' || h.outcome || coalesce(' ' || round(extract(epoch from h.lease_expires_at - clock_timestamp())), '') order by h.place)
  from (
    select h.*, row_number() over () as place
    from (
      select array_agg((l).org_id order by n) as o, array_agg((l).run_id order by n) as r, array_agg((l).attempt order by n) as a,
        array_agg((l).lease_id order by n) as i
      from unnest(p_runs) with ordinality as g (run, n) cross join lateral pg_temp.lease(g.run) as l
    ) as b
    cross join lateral counterfoil.heartbeat_attempts(b.o, b.r, b.a, b.i, p_seconds) as h
  ) as h
$function$;

select is(pg_temp.admit(r.id), 'admitted', r.id) from (values ('a'), ('b'), ('c'), ('d')) as r (id);
select is(pg_temp.admit('t', '{"attemptTimeoutSeconds": 60}'), 'admitted', 'one with a time-out');
select is(cardinality(pg_temp.claim(5)), 5, 'all are claimed');
select pg_temp.lapse('b');
select is((select c.outcome from counterfoil.cancel_run('org', 'c', 'enough') as c), 'requested', 'one is to be cancelled');
select ok(pg_temp.complete('d') ->> 'outcome' = 'completed', 'one has ended');
select is(
    pg_temp.beat(array['d', 'c', 'b', 'a', 't', 'a']),
    array['d lost', 'c cancel_requested 120', 'b lost', 'a ok 120', 't ok 60', 'a ok 120'], 'answers come in the order asked'
);
select ok((select a.lease_expires_at < clock_timestamp() from counterfoil.attempts as a where a.run_id = 'b'), 'a lapsed lease stays lapsed');
select is(pg_temp.beat(array['a'], 1), array['a ok 5'], 'at least five seconds');
select is(pg_temp.beat(array['a'], 1000), array['a ok 300'], 'at most three hundred');
select is(
    (select array_agg(h.outcome) from counterfoil.heartbeat_attempts(
        array['org', 'org-2', 'org'], array['a', 'a', 'nobody'], array[1, 1, 1],
        array['forged', (select (l).lease_id from pg_temp.lease('a') as l), 'x'], 60) as h),
    array['lost', 'lost', 'lost'], 'a forged lease, another org, an unknown run: lost'
);
select is_empty($$ select * from counterfoil.heartbeat_attempts('{}', '{}', '{}', '{}', 60) $$, 'none are none');
select pg_temp.raises(
    $$ select counterfoil.heartbeat_attempts(array['org'], array['a', 'b'], array[1], array['x'], 60) $$, 'RL001', 'p_org_ids', 'misaligned'
);
select pg_temp.raises(
    $$ select counterfoil.heartbeat_attempts(null, array['a'], array[1], array['x'], 60) $$, 'RL001', 'p_org_ids', 'missing'
);
select pg_temp.raises(
    $$ select counterfoil.heartbeat_attempts(array['org', 'org'], array['a', null], array[1, 1], array['x', 'x'], 60) $$,
    'RL001', 'p_org_ids[1]', 'a null element'
);
select pg_temp.lapse('t');
select is((select r.outcome from counterfoil.recover_attempts(10, 'default') as r where r.run_id = 't'), 'requeued', 't is taken back');
select is(pg_temp.beat(array['t']), array['t lost'], 'its old holder is told');

select * from finish();
rollback;
