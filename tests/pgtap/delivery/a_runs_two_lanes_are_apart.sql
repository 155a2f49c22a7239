-- One owner holds both lanes of a run: what it does with the delivery of one leaves the other as it is. And no call gives a lease
-- over 300 s, or more than prefix_max_facts.
begin;
\ir ../setup.psql
\ir setup.psql
select plan(11);

select pg_temp.quiet_run('r');
select pg_temp.fact('r', 'a' || i) from generate_series(1, 3) as i;
select pg_temp.fact('r', 's' || i, 'runner.logs', '{"searchOnly": true}') from generate_series(1, 3) as i;
select pg_temp.fact('r', 'b1', 'run.events');
select pg_temp.end_run('r');
select pg_temp.claim('d1', 'r', 1, p_lane => 'search');
create temporary table before as select pg_temp.lane('r', 'search') as lane;

select pg_temp.claim('d1', 'r', 1);
select counterfoil.release_delivery('acme', 'r', array['a1'], 'd1', true);
select is(pg_temp.lane('r', 'search'), b.lane, 'released') from before as b;
select pg_temp.make_due('r');
update counterfoil.lanes as l set due_at = (b.lane).due_at from before as b where l.run_id = 'r' and l.lane = 'search';
select pg_temp.claim('d1', 'r', 1);
select counterfoil.settle_delivery_failure('acme', 'r', array['a1'], 'd1', '{"message": "503"}');
select is(pg_temp.lane('r', 'search'), b.lane, 'settled') from before as b;
select pg_temp.make_due('r');
update counterfoil.lanes as l set due_at = (b.lane).due_at from before as b where l.run_id = 'r' and l.lane = 'search';
select pg_temp.claim('d1', 'r', 1);
select counterfoil.acknowledge_delivery('acme', 'r', array['a1'], 'd1', 1, 100000);
select ok((pg_temp.lane('r')).lease_expires_at <= clock_timestamp() + interval '300 seconds', 'a continuation has no longer lease than a claim');
select is(
    pg_temp.grid($$ select a.kind, a.event_id from counterfoil.acknowledge_delivery('acme', 'r', array['a1'], 'd1', 1) as a $$),
    '[["acknowledged", "a1"], ["claimed", "a2"]]', 'acknowledged, and once more'
);
select is(pg_temp.lane('r', 'search'), b.lane, 'which the other lane does not notice') from before as b;
select is(
    pg_temp.grid($$ select a.renewed from counterfoil.renew_deliveries('{acme}', '{r}', 'lifecycle', '{4}', 'd1', 100000) as a $$),
    '[[true]]', 'many at once are renewed'
);
select ok((pg_temp.lane('r')).lease_expires_at <= clock_timestamp() + interval '300 seconds', 'no longer either');

-- Widened, and taken over.
select counterfoil.acknowledge_delivery('acme', 'r', array['a2'], 'd1', 64);
select counterfoil.acknowledge_delivery('acme', 'r', array['a3'], 'd1', 64);
select counterfoil.widen_delivery('acme', 'r', 'b1', 'd1', p_lease_seconds => 100000);
select ok((pg_temp.lane('r')).lease_expires_at <= clock_timestamp() + interval '300 seconds', 'nor when it is widened');
select pg_temp.quiet_run('c');
select pg_temp.fact('c', 'c' || i) from generate_series(1, 3) as i;
update counterfoil.runs as r set cancel_requested_at = clock_timestamp() where r.run_id = 'c';
update counterfoil.settings set value = '2' where name = 'prefix_max_facts';
select is(
    pg_temp.grid($$ select t.event_id from counterfoil.take_over_delivery('acme', 'c', 'x', p_lease_seconds => 100000, p_limit => 64) as t $$),
    '[["c1"], ["c2"]]', 'a canceller takes no more than a claim does'
);
select ok((pg_temp.lane('c')).lease_expires_at <= clock_timestamp() + interval '300 seconds', 'for no longer');
select is(pg_temp.lane('r', 'search'), b.lane, 'all that time the search lane was left alone') from before as b;

select * from finish();
rollback;
