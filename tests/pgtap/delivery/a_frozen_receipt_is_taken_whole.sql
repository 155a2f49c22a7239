-- Once a delivery may have been attempted, the same set of facts goes under the same key, whoever delivers it.
begin;
\ir ../setup.psql
\ir setup.psql
select plan(26);

select pg_temp.quiet_run('r');
select pg_temp.fact('r', 'f' || i) from generate_series(1, 3) as i;
select is(pg_temp.claim('d1', 'r'), array['f1', 'f2', 'f3'], 'claimed');
select is(pg_temp.freeze('r', array['f3', 'f1', 'f2']), pg_temp.key('r', 'f1', 'f2', 'f3'), 'frozen, in whatever order the facts are named');
create temporary table first_freeze as select (pg_temp.lane('r')).receipt_frozen_at as at, (pg_temp.lane('r')).receipt_key as key;

-- More comes: it is no part of it.
select pg_temp.fact('r', 'f4');
select is(pg_temp.freeze('r', array['f1', 'f2', 'f3']), (select key from first_freeze), 'a second freeze keeps the key');
select is((pg_temp.lane('r')).receipt_frozen_at, (select at from first_freeze), 'and the time');

-- A crash after the freeze: another dispatcher, with a smaller limit.
select pg_temp.expire('r');
select is(
    pg_temp.grid($$ select c.event_id, c.frozen, c.idempotency_key = (select key from first_freeze)
        from counterfoil.claim_deliveries('d2', p_limit => 1, p_run_id => 'r') as c $$),
    '[["f1", true, true], ["f2", true, true], ["f3", true, true]]', 'never less, under the same key'
);
select pg_temp.raises(
    $$ select counterfoil.renew_delivery('acme', 'r', array['f1', 'f2', 'f3'], 'd1', 30, true) $$,
    'RL004', 'delivery_lease_not_current', 'the one that crashed has lost it'
);
select pg_temp.raises(
    $$ select counterfoil.acknowledge_delivery('acme', 'r', array['f1'], 'd2') $$, 'RL004', 'receipt_boundary_mismatch', 'it is not acknowledged in part'
);
select is(
    pg_temp.grid($$ select a.acknowledged from counterfoil.acknowledge_deliveries(array['acme'], array['r'], 'lifecycle', array[3::bigint], 'd2') as a $$),
    '[[false]]', 'nor so by the form for many'
);
select is((pg_temp.lane('r')).head_seq, 3::bigint, 'nothing moved');

-- Released, and failed: it stays.
select counterfoil.release_delivery('acme', 'r', array['f1', 'f2', 'f3'], 'd2');
select is(pg_temp.claim('d3', 'r', 64), array['f1', 'f2', 'f3'], 'never more either, after a release');
select counterfoil.settle_delivery_failure('acme', 'r', array['f1', 'f2', 'f3'], 'd3', '{"message": "503"}');
select is(pg_temp.claim('d4', 'r'), '{}', 'a failure makes it wait');
select pg_temp.make_due('r');
select is(pg_temp.claim('d4', 'r', 2), array['f1', 'f2', 'f3'], 'then it goes whole');
select is((pg_temp.lane('r')).receipt_frozen_at, (select at from first_freeze), 'since the first freeze');
select results_eq(
    $$ select a.kind, a.event_id from counterfoil.acknowledge_delivery('acme', 'r', array['f1', 'f2', 'f3'], 'd4', 10) as a $$,
    $$ values ('acknowledged', 'f1'), ('acknowledged', 'f2'), ('acknowledged', 'f3'), ('claimed', 'f4') $$, 'acknowledged whole'
);
select is(
    pg_temp.grid($$ select d.first_seq, d.last_seq, d.idempotency_key = (select key from first_freeze), d.frozen_at = (select at from first_freeze)
        from counterfoil.deliveries as d where d.run_id = 'r' and d.first_seq > 2 $$),
    '[[3, 5, true, true]]', 'the log keeps its key and time'
);
select is((pg_temp.lane('r')).receipt_key, null, 'what comes next is not frozen');

-- A single batch that was attempted does not grow for a receiver that has learnt more since.
select pg_temp.quiet_run('old');
select pg_temp.fact('old', 'o1', 'run.events');
select pg_temp.fact('old', 'o2', 'run.events');
select pg_temp.end_run('old');
select pg_temp.claim('d1', 'old');
select pg_temp.freeze('old', array['o1']);
select pg_temp.expire('old');
select is(pg_temp.claim('d2', 'old', p_allow => true), array['o1'], 'an attempted single stays single');
select is(
    (select count(*) from counterfoil.widen_delivery('acme', 'old', 'o1', 'd2')), 0::bigint, 'and cannot be widened'
);

-- A combined one does not shrink for an older dispatcher.
select pg_temp.quiet_run('new');
select pg_temp.fact('new', 'n1', 'run.events');
select pg_temp.fact('new', 'n2', 'run.events');
select pg_temp.end_run('new');
select pg_temp.fact('new', 'n3', 'runner.logs');
select pg_temp.claim('d1', 'new', p_allow => true);
select pg_temp.freeze('new', array['n1', 'n2', 'new-end', 'n3']);
select pg_temp.fact('new', 'n4', 'runner.logs');
select pg_temp.expire('new');
select is(
    pg_temp.claim('d2', 'new'), array['n1', 'n2', 'new-end', 'n3'], 'attempted together stays together, late logs included, later ones not'
);
select lives_ok(
    $$ select counterfoil.assert_delivery('acme', 'new', 'd2', pg_temp.key('new', 'n1', 'n2', 'new-end', 'n3'),
        pg_temp.events('new', 'n1', 'n2', 'new-end', 'n3')) $$, 'and is proven with its late logs'
);
update counterfoil.settings set value = '2' where name = 'prefix_max_facts';
select pg_temp.expire('new');
select is(pg_temp.claim('d3', 'new'), array['n1', 'n2', 'new-end', 'n3'], 'even when prefix_max_facts has become smaller');
select lives_ok(
    $$ select counterfoil.assert_delivery('acme', 'new', 'd3', pg_temp.key('new', 'n1', 'n2', 'new-end', 'n3')) $$, 'proven then too'
);
update counterfoil.settings set value = null where name = 'prefix_max_facts';

-- What has not been materialised cannot be frozen.
select pg_temp.quiet_run('raw');
select pg_temp.fact('raw', 'w1', 'run.events', '{"deferredProjection": true, "lines": ["x"]}');
select is(
    pg_temp.grid($$ select c.deferred, c.events from counterfoil.claim_deliveries('d1', p_run_id => 'raw') as c $$),
    '[[true, null]]', 'a deferred fact is claimed without events'
);
select pg_temp.raises(
    $$ select counterfoil.renew_delivery('acme', 'raw', array['w1'], 'd1', 30, true) $$, 'RL005', 'projection_deferred', 'and not frozen'
);
select lives_ok($$ select counterfoil.renew_delivery('acme', 'raw', array['w1'], 'd1', 30, false) $$, 'but renewed');
select is((pg_temp.lane('raw')).receipt_key, null, 'without a receipt');

select * from finish();
rollback;
