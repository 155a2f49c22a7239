-- The path of a run's facts, from the first claim to the empty lane.
begin;
\ir ../setup.psql
\ir setup.psql
select plan(22);

select pg_temp.started_run('r1');
select pg_temp.fact('r1', 'p1');
select pg_temp.fact('r1', 'p2');
select pg_temp.end_run('r1');

select results_eq(
    $$ select c.org_id, c.run_id, c.lane, c.seq, c.event_id, c.event_type, c.deferred, c.frozen,
        c.events, c.idempotency_key, c.dispatch_authority
       from counterfoil.claim_deliveries('d1') as c $$,
    $$ select 'acme', 'r1', 'lifecycle', 1::bigint, 'r1-created', 'run.created', false, false,
        pg_temp.events('r1', 'r1-created'), pg_temp.key('r1', 'r1-created'),
        '{"orgId": "acme", "runId": "r1", "executorToken": "stored-token"}'::jsonb $$,
    'run.created comes first and alone, projected, with the authority'
);
select is(pg_temp.claim('d2'), '{}', 'one delivery of a lane at a time');
select is(
    (select r.idempotency_key from counterfoil.renew_delivery('acme', 'r1', array['r1-created'], 'd1', 60, true) as r),
    pg_temp.key('r1', 'r1-created'), 'renewing with freeze answers the key'
);
select results_eq(
    $$ select a.first_seq, a.last_seq, a.first_index, a.event_total from counterfoil.assert_delivery('acme', 'r1', 'd1',
        pg_temp.key('r1', 'r1-created'), pg_temp.events('r1', 'r1-created')) as a $$,
    $$ values (1::bigint, 1::bigint, 0, 1) $$, 'the receiver can prove it'
);
select results_eq(
    $$ select a.kind, a.event_id from counterfoil.acknowledge_delivery('acme', 'r1', array['r1-created'], 'd1') as a $$,
    $$ values ('acknowledged', 'r1-created') $$, 'acknowledged'
);
select is(
    pg_temp.grid($$ select d.first_seq, d.last_seq, d.outcome, d.idempotency_key, d.lease_owner, d.frozen_at is not null
       from counterfoil.deliveries as d where d.run_id = 'r1' $$),
    jsonb_build_array(jsonb_build_array(1, 1, 'delivered', pg_temp.key('r1', 'r1-created'), 'd1', true)),
    'the delivery is in the log, with its receipt'
);
select is((pg_temp.lane('r1')).lease_owner, null, 'and the lease is gone');
select is((pg_temp.lane('r1')).receipt_key, null, 'and the receipt with it');
select is((pg_temp.lane('r1')).head_seq, 2::bigint, 'the head moved on');
select is((pg_temp.lane('r1')).priority, 1::smallint, 'a terminal is pending');

select results_eq(
    $$ select c.event_id from counterfoil.claim_deliveries('d1', 30, 64, 10) as c $$, $$ values ('r1-started') $$,
    'run.started comes alone'
);
select is(
    counterfoil.dispatch_launch_for_lease('acme', 'r1', 'r1-started', 'd1') -> 'input', '{"rows": 3}',
    'the holder reads the whole launch'
);
select is(
    counterfoil.dispatch_authority_for_lease('acme', 'r1', 'r1-started', 'd1'),
    '{"orgId": "acme", "runId": "r1", "executorToken": "stored-token"}', 'or the narrow authority'
);
select results_eq(
    $$ select a.kind, a.seq, a.event_id, a.dispatch_authority is not null, a.idempotency_key
       from counterfoil.acknowledge_delivery('acme', 'r1', array['r1-started'], 'd1', 64) as a $$,
    $$ values ('acknowledged', 2::bigint, 'r1-started', false, null),
       ('claimed', 3::bigint, 'p1', true, 'terminal:r1:' || (select delivery_key from counterfoil.outbox where event_id = 'r1-end')),
       ('claimed', 4::bigint, 'p2', false, 'terminal:r1:' || (select delivery_key from counterfoil.outbox where event_id = 'r1-end')),
       ('claimed', 5::bigint, 'r1-end', false, 'terminal:r1:' || (select delivery_key from counterfoil.outbox where event_id = 'r1-end')) $$,
    'the successor prefix is claimed in the same transaction, through the terminal'
);
select is(counterfoil.delivery_status('acme', 'r1', 'r1-started'), 'delivered', 'delivered');
select is(counterfoil.delivery_status('acme', 'r1', 'p2'), 'pending', 'pending');
select is(counterfoil.delivery_status('acme', 'r1', 'nothing'), 'unknown', 'unknown');
select results_eq(
    $$ select * from counterfoil.acknowledge_deliveries(array['acme'], array['r1'], 'lifecycle', array[5::bigint], 'd1') $$,
    $$ values ('acme', 'r1', true) $$, 'the form for many lanes does the same'
);
select is(pg_temp.lane('r1'), null, 'nothing is pending: the lane''s row is gone');
select is(counterfoil.delivery_status('acme', 'r1', 'r1-end'), 'delivered', 'the terminal is delivered');
select is(
    pg_temp.grid($$ select d.first_seq, d.last_seq, d.outcome from counterfoil.deliveries as d where d.run_id = 'r1' order by 1 $$),
    '[[1, 1, "delivered"], [2, 2, "delivered"], [3, 5, "delivered"]]',
    'the log tiles the facts'
);
select is(pg_temp.claim('d1'), '{}', 'nothing to claim');

select * from finish();
rollback;
