-- One claim may start one run and resume another: each fact's id tells its own type.
begin;
\ir ../setup.psql
\ir setup.psql
select plan(6);

select is(pg_temp.admit('waits', '{"priority": 0}'), 'admitted', 'a run');
select is(pg_temp.claim(), array['waits'], 'is claimed');
select is(
    (
        select s.outcome
        from pg_temp.lease('waits') as l
        cross join lateral counterfoil.suspend_attempt((l).org_id, (l).run_id, (l).attempt, (l).lease_id, 'r', null, '0 seconds') as s
    ),
    'suspended', 'and waits for a moment'
);
select is(pg_temp.admit('fresh', '{"priority": 9}'), 'admitted', 'another run');
select is(pg_temp.claim(2), array['waits', 'fresh'], 'both are claimed together, the resumed one first');
select is(
    (select array_agg(distinct o.event_type) from counterfoil.outbox as o where o.event_id not like o.event_type || ':%'),
    null, 'and no fact bears the name of another type'
);

select * from finish();
rollback;
