-- Which facts one claim takes of a lane.
begin;
\ir ../setup.psql
\ir setup.psql
select plan(30);

-- Start facts.
select pg_temp.started_run('starts');
select pg_temp.fact('starts', 's1');
select is(pg_temp.claim('d', 'starts'), array['starts-created'], 'run.created alone');
select counterfoil.acknowledge_delivery('acme', 'starts', array['starts-created'], 'd');
select is(pg_temp.claim('d', 'starts'), array['starts-started'], 'run.started alone');
select counterfoil.acknowledge_delivery('acme', 'starts', array['starts-started'], 'd');
select is(pg_temp.claim('d', 'starts'), array['s1'], 'then the rest');

-- Limits.
select pg_temp.quiet_run('many');
select pg_temp.fact('many', 'm' || i) from generate_series(1, 5) as i;
select is(pg_temp.claim('d', 'many', 2), array['m1', 'm2'], 'no more than p_limit');
select is((pg_temp.lane('many')).lease_through_seq, 4::bigint, 'and no more is leased');
select counterfoil.release_delivery('acme', 'many', array['m1', 'm2'], 'd');
select is(pg_temp.claim('d', 'many', 1000), array['m1', 'm2', 'm3', 'm4', 'm5'], 'all where p_limit allows');
select counterfoil.release_delivery('acme', 'many', array['m1'], 'd');
update counterfoil.settings set value = '3' where name = 'prefix_max_facts';
select is(pg_temp.claim('d', 'many', 1000), array['m1', 'm2', 'm3'], 'never over prefix_max_facts');
update counterfoil.settings set value = null where name = 'prefix_max_facts';

-- Ingress facts.
select pg_temp.quiet_run('batches');
select pg_temp.fact('batches', 'b1', 'run.events');
select pg_temp.fact('batches', 'b2');
select pg_temp.fact('batches', 'b3');
select pg_temp.fact('batches', 'b4', 'run.events');
select pg_temp.fact('batches', 'b5');
select is(pg_temp.claim('d', 'batches'), array['b1'], 'a batch of a producer goes alone');
select counterfoil.acknowledge_delivery('acme', 'batches', array['b1'], 'd');
select is(pg_temp.claim('d', 'batches'), array['b2', 'b3'], 'and ends what comes before it');
select counterfoil.release_delivery('acme', 'batches', array['b2'], 'd');
select is(pg_temp.claim('d', 'batches', p_allow => true), array['b2', 'b3'], 'a capable receiver changes nothing while the run is in no hurry');
select counterfoil.release_delivery('acme', 'batches', array['b2'], 'd');
select pg_temp.fact('batches', 'b6', 'run.waiting', '{"kind": "detached_runner"}');
select is(pg_temp.claim('d', 'batches', p_allow => true), array['b2', 'b3'], 'nor does a detached park');
select counterfoil.release_delivery('acme', 'batches', array['b2'], 'd');
select pg_temp.fact('batches', 'b7', 'run.waiting', '{"kind": "public", "reason": "approval"}');
select is(pg_temp.claim('d', 'batches'), array['b2', 'b3'], 'nor a public wait without a capable receiver');
select counterfoil.release_delivery('acme', 'batches', array['b2'], 'd');
select is(
    pg_temp.claim('d', 'batches', p_allow => true), array['b2', 'b3', 'b4', 'b5', 'b6', 'b7'], 'both together combine the batches with the rest'
);
select counterfoil.release_delivery('acme', 'batches', array['b2'], 'd');
select is(pg_temp.claim('d', 'batches', 3, p_allow => true), array['b2', 'b3', 'b4'], 'up to the limit');

-- Terminals.
select pg_temp.quiet_run('ends');
select pg_temp.fact('ends', 'x1');
select pg_temp.end_run('ends');
select pg_temp.fact('ends', 'x2', 'runner.logs');
select is(pg_temp.claim('d', 'ends'), array['x1', 'ends-end'], 'the terminal is the last');
select counterfoil.acknowledge_delivery('acme', 'ends', array['x1', 'ends-end'], 'd');
select is(pg_temp.claim('d', 'ends'), array['x2'], 'late logs come after it');

select pg_temp.quiet_run('urgent');
select pg_temp.fact('urgent', 'u1', 'run.events');
select pg_temp.fact('urgent', 'u2', 'run.events');
select pg_temp.end_run('urgent');
select pg_temp.fact('urgent', 'u3', 'runner.logs');
select is(pg_temp.claim('d', 'urgent'), array['u1'], 'old receivers get an ended run''s batches one by one');
select counterfoil.release_delivery('acme', 'urgent', array['u1'], 'd');
select is(
    pg_temp.claim('d', 'urgent', p_allow => true), array['u1', 'u2', 'urgent-end', 'u3'],
    'capable ones get them with the terminal, and late logs behind an ingress head'
);
select is(pg_temp.claim('x', 'urgent', p_allow => true), '{}', 'once');
select is(pg_temp.key('urgent', 'u1', 'u2', 'urgent-end', 'u3'),
    'terminal:urgent:' || (select o.delivery_key from counterfoil.outbox as o where o.event_id = 'urgent-end'),
    'a terminal names the delivery wherever it stands');

select pg_temp.quiet_run('calm');
select pg_temp.fact('calm', 'c1');
select pg_temp.fact('calm', 'c2', 'run.events');
select pg_temp.end_run('calm');
select pg_temp.fact('calm', 'c3', 'runner.logs');
select is(pg_temp.claim('d', 'calm', p_allow => true), array['c1', 'c2', 'calm-end'], 'behind any other head the terminal is the last');

-- Failures in the way.
select pg_temp.quiet_run('hurt');
select pg_temp.fact('hurt', 'h' || i) from generate_series(1, 4) as i;
select pg_temp.claim('d', 'hurt');
select counterfoil.settle_delivery_failure('acme', 'hurt', array['h1', 'h2', 'h3', 'h4'], 'd', '{"message": "bad", "retryable": true, "eventId": "h3"}');
select is(pg_temp.claim('d', 'hurt'), array['h1', 'h2'], 'what waits for a retry ends the prefix');
select counterfoil.acknowledge_delivery('acme', 'hurt', array['h1', 'h2'], 'd', 64);
select is((pg_temp.lane('hurt')).lease_owner, null, 'and is not claimed by continuation');
select is(pg_temp.claim('d', 'hurt'), '{}', 'as the head it keeps the lane back');
select pg_temp.make_due('hurt');
select is(pg_temp.claim('d', 'hurt'), array['h3', 'h4'], 'until it is due');
select counterfoil.settle_delivery_failure('acme', 'hurt', array['h3', 'h4'], 'd', '{"message": "bad", "retryable": false, "eventId": "h4"}');
select is(pg_temp.claim('d', 'hurt'), array['h3'], 'a blocked fact ends it too');
select counterfoil.acknowledge_delivery('acme', 'hurt', array['h3'], 'd');
select is(pg_temp.claim('d', 'hurt'), '{}', 'and blocks the lane as its head');

-- The search lane lies between.
select pg_temp.quiet_run('mixed');
select pg_temp.fact('mixed', 'l1');
select pg_temp.fact('mixed', 'q1', 'runner.logs', '{"searchOnly": true}');
select pg_temp.fact('mixed', 'l2');
select pg_temp.fact('mixed', 'q2', 'run.progress', '{"searchOnly": true}');
select is(pg_temp.claim('d', 'mixed'), array['l1', 'l2'], 'each lane has its own order');
select is(pg_temp.claim('d2', 'mixed', p_lane => 'search'), array['q1', 'q2'], 'and its own lease');
select is(
    (select count(*) from counterfoil.outbox as o left join counterfoil.lanes as l on l.org_id = o.org_id and l.run_id = o.run_id and l.lane = o.lane
     where o.run_id = 'mixed' and o.lane = 'search' and l.lease_owner = 'd2'), 2::bigint, 'held at the same time'
);

select * from finish();
rollback;
