-- A receiver says that it takes combined prefixes: the batch that was claimed alone grows to all of it.
begin;
\ir ../setup.psql
\ir setup.psql
select plan(32);

create function pg_temp.widen(p_run text, p_head text, p_owner text default 'd1', p_limit integer default 64)
returns text[] language sql volatile as $function$
    select coalesce(array_agg(w.event_id), '{}') from counterfoil.widen_delivery('acme', p_run, p_head, p_owner, 60, p_limit) as w
$function$;

select pg_temp.quiet_run('r');
select pg_temp.fact('r', 'b1', 'run.events');
select pg_temp.fact('r', 'b2', 'run.events');
select pg_temp.fact('r', 'p1');
select is(pg_temp.claim('d1', 'r'), array['b1'], 'a batch alone');
select is(pg_temp.widen('r', 'b1'), '{}', 'is not widened while the run is in no hurry');
select is((pg_temp.lane('r')).lease_through_seq, 3::bigint, 'and stays as it was');
select pg_temp.end_run('r');
select pg_temp.fact('r', 'raw', 'runner.logs', '{"deferredProjection": true, "lines": ["late"]}');
select is(pg_temp.widen('r', 'b1', p_limit => 1), '{}', 'nor when it may hold no more');
select is(pg_temp.widen('r', 'b1', p_limit => 2), array['b1', 'b2'], 'within the limit');
select is(pg_temp.widen('r', 'b1'), array['b1', 'b2', 'p1', 'r-end', 'raw'], 'to all of it, late logs included');
select is(pg_temp.widen('r', 'b1'), array['b1', 'b2', 'p1', 'r-end', 'raw'], 'and a repeat answers the same');
select is(
    pg_temp.grid($$ select w.deferred, w.events is null, w.dispatch_authority is not null from counterfoil.widen_delivery('acme', 'r', 'b1', 'd1') as w $$),
    '[[false, false, true], [false, false, false], [false, false, false], [false, false, false], [true, true, false]]',
    'what joins deferred says so'
);
select pg_temp.raises($$ select counterfoil.renew_delivery('acme', 'r', array['b1', 'b2', 'p1', 'r-end', 'raw'], 'd1', 30, true) $$,
    'RL005', 'projection_deferred', 'and must be materialised before any HTTP');
update counterfoil.outbox set deferred = false, payload = payload - 'deferredProjection' where event_id = 'raw';
select lives_ok($$ select counterfoil.renew_delivery('acme', 'r', array['b1', 'b2', 'p1', 'r-end', 'raw'], 'd1', 30, true) $$, 'then it is frozen as one');
select is(pg_temp.widen('r', 'b1'), '{}', 'what is frozen is not widened');
select lives_ok($$ select counterfoil.acknowledge_delivery('acme', 'r', array['b1', 'b2', 'p1', 'r-end', 'raw'], 'd1') $$, 'and acknowledged as one');

-- A public wait is urgent too.
select pg_temp.quiet_run('w');
select pg_temp.fact('w', 'w1', 'run.events');
select pg_temp.fact('w', 'w2', 'run.waiting', '{"kind": "public"}');
select pg_temp.fact('w', 'w3', 'run.events');
select pg_temp.claim('d1', 'w');
select is(pg_temp.widen('w', 'w1'), array['w1', 'w2', 'w3'], 'a public wait is a hurry');

-- A blocked fact, or one that waits, ends it as it ends a claim.
select pg_temp.quiet_run('x');
select pg_temp.fact('x', 'x' || i, 'run.events') from generate_series(1, 3) as i;
select pg_temp.end_run('x');
select pg_temp.claim('d1', 'x', p_allow => true);
select counterfoil.settle_delivery_failure('acme', 'x', array['x1', 'x2', 'x3', 'x-end'], 'd1', '{"message": "m", "retryable": false, "eventId": "x3"}');
select pg_temp.claim('d1', 'x');
select is(pg_temp.widen('x', 'x1'), array['x1', 'x2'], 'up to a blocked fact');

-- Heads that are none, or not a batch.
select pg_temp.quiet_run('h');
select pg_temp.fact('h', 'h0');
select pg_temp.fact('h', 'h1', 'run.events');
select pg_temp.end_run('h');
select pg_temp.claim('d1', 'h');
select is(pg_temp.widen('h', 'h0'), '{}', 'a head that is no batch');
select counterfoil.acknowledge_delivery('acme', 'h', array['h0'], 'd1', 64, 30, true);
select is(pg_temp.widen('h', 'h-end'), '{}', 'a fact that is not the head');
select pg_temp.quiet_run('i');
select pg_temp.fact('i', 'i' || n, 'run.events') from generate_series(1, 3) as n;
select pg_temp.end_run('i');
select pg_temp.claim('d1', 'i', 2, p_allow => true);
select is(pg_temp.widen('i', 'i2'), '{}', 'another batch that is not the head');
select is(pg_temp.widen('i', 'i1', p_limit => 3), array['i1', 'i2', 'i3'], 'which is widened by its name');
select ok((pg_temp.lane('i')).lease_expires_at > clock_timestamp() + interval '50 seconds', 'for as long as was asked');
update counterfoil.settings set value = '2' where name = 'prefix_max_facts';
select is(pg_temp.widen('i', 'i1'), array['i1', 'i2'], 'never over prefix_max_facts');
update counterfoil.settings set value = null where name = 'prefix_max_facts';
-- The server's clock was set back since the lane was last touched.
update counterfoil.lanes set due_at = clock_timestamp() + interval '1 hour' where run_id = 'i';
select is(pg_temp.widen('i', 'i1'), array['i1', 'i2', 'i3', 'i-end'], 'whatever the clock has done meanwhile');
select counterfoil.acknowledge_delivery('acme', 'h', array['h1', 'h-end'], 'd1');
select pg_temp.quiet_run('one');
select pg_temp.fact('one', 'o1', 'run.events');
select pg_temp.claim('d1', 'one');
select is(pg_temp.widen('one', 'o1'), '{}', 'a head with nothing behind it');

-- Whose lease it is.
select pg_temp.quiet_run('l');
select pg_temp.fact('l', 'l1', 'run.events');
select pg_temp.end_run('l');
select pg_temp.claim('d1', 'l');
select pg_temp.raises($$ select counterfoil.widen_delivery('acme', 'l', 'l1', 'd2') $$, 'RL004', 'head_lease_owner_mismatch', 'another''s');
select pg_temp.raises($$ select counterfoil.widen_delivery('acme', 'l', 'l-end', 'd1') $$, 'RL004', 'delivery_lease_not_current', 'not over that fact');
select pg_temp.expire('l');
select pg_temp.raises($$ select counterfoil.widen_delivery('acme', 'l', 'l1', 'd1') $$, 'RL004', 'delivery_lease_not_current', 'not any more');
select pg_temp.claim('d2', 'l');
select pg_temp.raises($$ select counterfoil.widen_delivery('acme', 'l', 'l1', 'd1') $$, 'RL004', 'head_lease_owner_mismatch', 'another''s by now');
select is((pg_temp.lane('l')).lease_owner, 'd2', 'who keeps it');
select pg_temp.raises($$ select counterfoil.widen_delivery('acme', 'l', 'nothing', 'd2') $$, 'RL002', 'fact_not_found');
select pg_temp.raises($$ select counterfoil.widen_delivery('acme', 'l', 'l1', 'd2', 30, 0) $$, 'RL001', 'p_limit');
select pg_temp.raises($$ select counterfoil.widen_delivery('acme', 'l', null, 'd2') $$, 'RL001', 'p_event_id');
select pg_temp.raises($$ select counterfoil.widen_delivery('', 'l', 'l1', 'd2') $$, 'RL001', 'p_org_id');
select pg_temp.raises($$ select counterfoil.widen_delivery('acme', 'l', 'l1', null) $$, 'RL001', 'p_lease_owner');

select * from finish();
rollback;
