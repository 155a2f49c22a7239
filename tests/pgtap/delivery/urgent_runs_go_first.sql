-- Which lane a claim takes when many are ready, and what it passes over.
begin;
\ir ../setup.psql
\ir setup.psql
select plan(30);

-- In this order they came; none has a time in common with another.
select pg_temp.quiet_run('plain');
select pg_temp.fact('plain', 'p1');
select pg_temp.quiet_run('parked');
select pg_temp.fact('parked', 'k1', 'run.waiting', '{"kind": "detached_runner"}');
select pg_temp.quiet_run('waits');
select pg_temp.fact('waits', 'w1', 'run.waiting', '{"kind": "public"}');
select pg_temp.quiet_run('ends');
select pg_temp.fact('ends', 'e1');
select pg_temp.end_run('ends');
select pg_temp.queued_run('new');

select is(
    pg_temp.grid($$ select l.run_id, l.priority from counterfoil.lanes as l order by l.due_at $$),
    '[["plain", 3], ["parked", 3], ["waits", 2], ["ends", 1], ["new", 0]]', 'urgency is known before anyone asks'
);
select is(pg_temp.claim('d', p_max_runs => 10), array['new-created', 'e1', 'ends-end', 'w1', 'p1', 'k1'],
    'admission first: new runs, ends, public waits, then by age');
select is((select count(*) from counterfoil.lanes as l where l.lease_owner = 'd'), 5::bigint, 'five runs in one call');
select counterfoil.release_delivery('acme', l.run_id, array[l.event], 'd')
from (values ('plain', 'p1'), ('parked', 'k1'), ('waits', 'w1'), ('ends', 'e1'), ('new', 'new-created')) as l (run_id, event);
select is(pg_temp.claim('d', p_max_runs => 10, p_priority => 'oldest_ready'), array['p1', 'k1', 'w1', 'e1', 'ends-end', 'new-created'],
    'oldest ready: by age alone');
select counterfoil.release_delivery('acme', l.run_id, array[l.event], 'd')
from (values ('plain', 'p1'), ('parked', 'k1'), ('waits', 'w1'), ('ends', 'e1'), ('new', 'new-created')) as l (run_id, event);

select is(pg_temp.claim('d'), array['new-created'], 'one at a time: the newcomer');
select is(pg_temp.claim('d'), array['e1', 'ends-end'], 'the end');
select is(pg_temp.claim('d'), array['w1'], 'the wait');
select is(pg_temp.claim('d', p_priority => 'oldest_ready'), array['p1'], 'the oldest');
select is(pg_temp.claim('d'), array['k1'], 'the last');
select is(pg_temp.claim('d'), '{}', 'live leases are passed over');
select pg_temp.expire('waits');
select is(pg_temp.claim('d2', p_max_runs => 10), array['w1'], 'expired ones are not');
select pg_temp.expire('plain');
select is(pg_temp.claim('d2', p_max_runs => 10, p_priority => 'oldest_ready'), array['p1'], 'in either order');

-- Urgency comes and goes.
select counterfoil.acknowledge_delivery('acme', 'plain', array['p1'], 'd2');
select pg_temp.fact('plain', 'p2');
select pg_temp.fact('plain', 'p3', 'run.waiting', '{"kind": "public"}');
select is((pg_temp.lane('plain')).priority, 2::smallint, 'a wait makes a lane urgent');
select pg_temp.fact('plain', 'p4', 'run.resumed', '{}');
select pg_temp.fact('plain', 'p5', 'run.events');
select is(pg_temp.claim('d', 'plain', 2), array['p2', 'p3'], 'claimed through the wait');
select counterfoil.acknowledge_delivery('acme', 'plain', array['p2', 'p3'], 'd');
select is((pg_temp.lane('plain')).priority, 3::smallint, 'delivered, it is urgent no more');
select ok((pg_temp.lane('plain')).wait_seq is null, 'nor marked');
select pg_temp.end_run('plain');
select is((pg_temp.lane('plain')).priority, 1::smallint, 'an end makes it more so');

-- Backoff outlasts urgency.
select pg_temp.quiet_run('later');
select pg_temp.fact('later', 'l1');
select pg_temp.claim('d', 'later');
select counterfoil.settle_delivery_failure('acme', 'later', array['l1'], 'd', '{"message": "503"}');
create temporary table was as select (pg_temp.lane('later')).due_at as due_at;
select pg_temp.end_run('later');
select is((pg_temp.lane('later')).due_at, (select w.due_at from was as w), 'an end does not cut a backoff short');
select is(pg_temp.claim('d', 'later'), '{}', 'so the head waits');

-- One run, one org.
select pg_temp.quiet_run('ends', 'other');
select pg_temp.fact('ends', 'x1', p_org => 'other');
select pg_temp.quiet_run('only', 'other');
select pg_temp.fact('only', 'x2', p_org => 'other');
select pg_temp.queued_run('fresh', 'other');
select is(pg_temp.claim('d', 'only'), array['x2'], 'a run is found without its org');
select is(pg_temp.claim('d', 'nothing'), '{}', 'or not');
select pg_temp.expire('ends');
select pg_temp.raises($$ select counterfoil.claim_deliveries('d', p_run_id => 'ends') $$, 'RL001', 'p_run_id', 'unless two orgs have one');
select is(pg_temp.claim('d', 'ends', p_org => 'other'), array['x1'], 'then the org is said');
select is(pg_temp.claim('d', p_max_runs => 9, p_org => 'other'), array['fresh-created'], 'a claim for an org stays in it');
update counterfoil.lanes set lease_owner = null, lease_expires_at = null, lease_through_seq = null where org_id = 'other';
select is(pg_temp.claim('d', p_max_runs => 9, p_org => 'other'), array['fresh-created', 'x1', 'x2'], 'admission first there too');
update counterfoil.lanes set lease_owner = null, lease_expires_at = null, lease_through_seq = null where org_id = 'other';
select is(pg_temp.claim('d', p_max_runs => 9, p_org => 'other', p_priority => 'oldest_ready'), array['x1', 'x2', 'fresh-created'], 'or by age');

-- The search lane.
select pg_temp.fact('waits', 'q1', 'runner.logs', '{"searchOnly": true}');
select pg_temp.fact('only', 'q2', 'runner.logs', '{"searchOnly": true}', p_org => 'other');
select is(pg_temp.claim('s', p_max_runs => 9, p_lane => 'search'), array['q1', 'q2'], 'the search lane is claimed for itself');
select is(
    (select bool_or(c.dispatch_authority is not null) from counterfoil.lanes as l
     cross join lateral counterfoil.claim_deliveries('s2', p_run_id => l.run_id, p_org_id => l.org_id, p_lane => 'search') as c),
    null, 'once'
);
update counterfoil.lanes set lease_expires_at = '-infinity' where lane = 'search';
select is(pg_temp.claim('s', p_max_runs => 9, p_lane => 'search', p_org => 'other'), array['q2'], 'by org');
select is(
    pg_temp.grid($$ select c.event_id, c.dispatch_authority from counterfoil.claim_deliveries('s', p_lane => 'search', p_head_priority => 'oldest_ready') as c $$),
    '[["q1", null]]', 'without authority: nothing of it goes anywhere'
);

select * from finish();
rollback;
