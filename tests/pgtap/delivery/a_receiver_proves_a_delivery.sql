-- Each reason for which a receiver refuses a delivery, each from what really leads to it.
begin;
\ir ../setup.psql
\ir setup.psql
select plan(45);

create function pg_temp.proof(p_run text, p_owner text, p_key text, p_events jsonb default null, p_more text default '')
returns text language sql as $function$
    select format('select * from counterfoil.assert_delivery(%L, %L, %L, %L, %L::jsonb%s)', 'acme', p_run, p_owner, p_key, p_events, p_more)
$function$;
create function pg_temp.refused(p_reason text, p_proof text, p_description text)
returns text language sql as $function$
    select pg_temp.raises(p_proof, 'RL004', p_reason, p_reason || ': ' || p_description)
$function$;

select pg_temp.quiet_run('r');
select pg_temp.fact('r', 'a' || i) from generate_series(1, 3) as i;
select pg_temp.claim('d1', 'r');
select pg_temp.freeze('r', array['a1', 'a2', 'a3']);
create temporary table k as select pg_temp.key('r', 'a1', 'a2', 'a3') as key, pg_temp.events('r', 'a1', 'a2', 'a3') as events;

select is(
    pg_temp.grid(pg_temp.proof('r', 'd1', (select key from k), (select events from k))), '[[3, 5, 0, 3]]', 'the delivery as it is'
);
select is(pg_temp.grid(pg_temp.proof('r', 'd1', (select key from k))), '[[3, 5, null, null]]', 'events need not be given');

-- What is not its projection.
select pg_temp.refused('projected_events_mismatch', pg_temp.proof('r', 'd1', key, events - 1), 'one dropped') from k;
select pg_temp.refused('projected_events_mismatch', pg_temp.proof('r', 'd1', key, events || (events -> 0)), 'one added') from k;
select pg_temp.refused('projected_events_mismatch', pg_temp.proof('r', 'd1', key,
    jsonb_build_array(events -> 1, events -> 0, events -> 2)), 'two exchanged') from k;
select pg_temp.refused('projected_events_mismatch', pg_temp.proof('r', 'd1', key, jsonb_set(events, '{1,data,n}', '"forged"')), 'one edited') from k;
select pg_temp.refused('projected_events_mismatch', pg_temp.proof('r', 'd1', key, jsonb_set(events, '{2,occurredAt}', '"2020-01-01T00:00:00Z"')), 'one moved in time') from k;
select pg_temp.refused('projected_events_mismatch', pg_temp.proof('r', 'd1', key, '[]'), 'none at all') from k;

-- Pieces.
select is(pg_temp.grid(pg_temp.proof('r', 'd1', key, jsonb_build_array(events -> 0, events -> 1), ', 1, 2')), '[[3, 5, 0, 3]]', 'the first piece') from k;
select is(pg_temp.grid(pg_temp.proof('r', 'd1', key, jsonb_build_array(events -> 2), ', 2, 2')), '[[3, 5, 2, 3]]', 'the second piece') from k;
select is(pg_temp.grid(pg_temp.proof('r', 'd1', key, events, ', 1, 1')), '[[3, 5, 0, 3]]', 'the only piece') from k;
select pg_temp.refused('projected_events_mismatch', pg_temp.proof('r', 'd1', key, jsonb_build_array(events -> 0, events -> 2), ', 1, 2'), 'a piece with a hole') from k;
select pg_temp.refused('projected_events_mismatch', pg_temp.proof('r', 'd1', key, jsonb_build_array(events -> 2, '{}'), ', 2, 2'), 'a piece past the end') from k;
select pg_temp.refused('projected_events_mismatch', pg_temp.proof('r', 'd1', key, '[{"eventId": "no", "item": 0}]', ', 1, 2'), 'a piece of something else') from k;
select pg_temp.refused('projected_events_mismatch', pg_temp.proof('r', 'd1', key, '[{}]', ', 1, 2'), 'a piece of nothing') from k;
select pg_temp.refused('projected_events_mismatch', pg_temp.proof('r', 'd1', key, '[]', ', 1, 2'), 'a piece without events') from k;
select pg_temp.raises(pg_temp.proof('r', 'd1', 'k', '[]', ', 3, 2'), 'RL001', 'p_chunk');
select pg_temp.raises(pg_temp.proof('r', 'd1', 'k', '[]', ', 1, null'), 'RL001', 'p_chunk_count');
select pg_temp.raises(pg_temp.proof('r', 'd1', 'k', '[]', ', 0, 2'), 'RL001', 'p_chunk');

-- A frozen receipt is one thing.
select pg_temp.refused('receipt_boundary_mismatch', pg_temp.proof('r', 'd1', pg_temp.key('r', 'a1', 'a2')), 'a part of it');
select pg_temp.fact('r', 'a4');
select pg_temp.refused('receipt_boundary_mismatch', pg_temp.proof('r', 'd1', pg_temp.key('r', 'a1', 'a2', 'a3', 'a4')), 'more than it');

-- A dispatcher that slept past its lease.
select pg_temp.expire('r');
select pg_temp.refused('prefix_lease_expired', pg_temp.proof('r', 'd1', (select key from k), (select events from k)), 'its lease ran out');
select pg_temp.claim('d2', 'r');
select pg_temp.refused('head_lease_owner_mismatch', pg_temp.proof('r', 'd1', (select key from k), (select events from k)), 'another took over');
select lives_ok(pg_temp.proof('r', 'd2', (select key from k), (select events from k)), 'who delivers the same thing under the same key');

-- A late request, after its dispatcher had given up.
select counterfoil.settle_delivery_failure('acme', 'r', array['a1', 'a2', 'a3'], 'd2', '{"message": "timed out"}');
select pg_temp.refused('prefix_not_due', pg_temp.proof('r', 'd2', (select key from k)), 'it was settled and waits for its retry');
select pg_temp.make_due('r');
select pg_temp.refused('delivery_lease_not_current', pg_temp.proof('r', 'd2', (select key from k)), 'nobody has claimed it again');
select pg_temp.claim('d2', 'r');
select counterfoil.release_delivery('acme', 'r', array['a1'], 'd2');
select pg_temp.refused('delivery_lease_not_current', pg_temp.proof('r', 'd2', (select key from k)), 'it was released');
select pg_temp.claim('d2', 'r');
select counterfoil.settle_delivery_failure('acme', 'r', array['a1', 'a2', 'a3'], 'd2', '{"message": "refused", "retryable": false}');
select pg_temp.refused('predecessor_failed', pg_temp.proof('r', 'd2', (select key from k)), 'it is blocked');

-- Not frozen: receivers may still be asked, and any prefix of what is held is one.
select pg_temp.quiet_run('s');
select pg_temp.fact('s', 'b' || i) from generate_series(1, 5) as i;
select pg_temp.claim('d1', 's', 3);
select is(pg_temp.grid(pg_temp.proof('s', 'd1', pg_temp.key('s', 'b1', 'b2', 'b3'))), '[[3, 5, null, null]]', 'all that is held');
select is(pg_temp.grid(pg_temp.proof('s', 'd1', pg_temp.key('s', 'b1'), pg_temp.events('s', 'b1'))), '[[3, 3, 0, 1]]', 'or the first of it');
select pg_temp.refused('receipt_boundary_mismatch', pg_temp.proof('s', 'd1', pg_temp.key('s', 'b2', 'b3')), 'not without the head');
select pg_temp.refused('receipt_boundary_mismatch', pg_temp.proof('s', 'd1', pg_temp.key('s', 'b1', 'b3')), 'not with a gap');
select pg_temp.refused('receipt_boundary_mismatch', pg_temp.proof('s', 'd1', 'events:s:made-up'), 'not under any key');
select pg_temp.refused('prefix_lease_owner_mismatch', pg_temp.proof('s', 'd1', pg_temp.key('s', 'b1', 'b2', 'b3', 'b4')), 'an older, larger claim of the same owner');
update counterfoil.settings set value = '3' where name = 'prefix_max_facts';
select pg_temp.refused('receipt_boundary_mismatch', pg_temp.proof('s', 'd1', pg_temp.key('s', 'b1', 'b2', 'b3', 'b4')), 'no fact past the limit is looked at');
update counterfoil.settings set value = null where name = 'prefix_max_facts';
select counterfoil.settle_delivery_failure('acme', 's', array['b1', 'b2', 'b3'], 'd1', '{"message": "m", "eventId": "b3"}');
select pg_temp.claim('d1', 's');
select pg_temp.refused('prefix_not_due', pg_temp.proof('s', 'd1', pg_temp.key('s', 'b1', 'b2', 'b3')), 'one of its facts waits for its retry');
select counterfoil.release_delivery('acme', 's', array['b1'], 'd1');
select pg_temp.make_due('s');
select pg_temp.claim('d1', 's');
select counterfoil.settle_delivery_failure('acme', 's', array['b1', 'b2', 'b3'], 'd1', '{"message": "m", "eventId": "b3", "retryable": false}');
select pg_temp.claim('d1', 's');
select pg_temp.refused('predecessor_failed', pg_temp.proof('s', 'd1', pg_temp.key('s', 'b1', 'b2', 'b3')), 'one of its facts is blocked');

-- Logs that come after the terminal do not change the key, and are no part of what is held.
select pg_temp.quiet_run('t');
select pg_temp.fact('t', 'c1');
select pg_temp.end_run('t');
select pg_temp.claim('d1', 't');
select pg_temp.fact('t', 'c2', 'runner.logs');
select is(pg_temp.grid(pg_temp.proof('t', 'd1', pg_temp.key('t', 'c1', 't-end'), pg_temp.events('t', 'c1', 't-end'))), '[[3, 4, 0, 2]]',
    'a terminal, though more came after it');

-- Unless they came along behind an ingress head: then they are.
select pg_temp.quiet_run('i');
select pg_temp.fact('i', 'i1', 'run.events');
select pg_temp.end_run('i');
select pg_temp.fact('i', 'i2', 'runner.logs');
select is(pg_temp.claim('d1', 'i', p_allow => true), array['i1', 'i-end', 'i2'], 'late logs come along');
select is(pg_temp.grid(pg_temp.proof('i', 'd1', pg_temp.key('i', 'i1', 'i-end', 'i2'))), '[[3, 5, null, null]]', 'and are proven with the terminal');

-- A piece may begin within a fact.
select pg_temp.quiet_run('p');
select pg_temp.fact('p', 'p1', 'run.events', '{"events": [{"type": "log.appended", "n": 0}, {"type": "log.appended", "n": 1}, {"type": "log.appended", "n": 2}]}');
select pg_temp.claim('d1', 'p');
select is(
    pg_temp.grid(pg_temp.proof('p', 'd1', pg_temp.key('p', 'p1'), jsonb_path_query_array(pg_temp.events('p', 'p1'), '$[1 to 2]'), ', 2, 2')),
    '[[3, 3, 1, 3]]', 'the second piece of one fact'
);

-- A delivery that was acknowledged, and runs that have none.
select pg_temp.quiet_run('done');
select pg_temp.refused('nothing_pending', pg_temp.proof('done', 'd1', 'k'), 'all was acknowledged');
select pg_temp.raises(pg_temp.proof('nobody', 'd1', 'k'), 'RL002', 'run_not_found');

-- Deferred facts.
select pg_temp.quiet_run('raw');
select pg_temp.fact('raw', 'w', 'run.events', '{"deferredProjection": true}');
select pg_temp.claim('d1', 'raw');
select pg_temp.raises(pg_temp.proof('raw', 'd1', pg_temp.key('raw', 'w'), '[]'), 'RL005', 'projection_deferred');

-- The search lane has no receiver.
select pg_temp.quiet_run('lines');
select pg_temp.fact('lines', 'q', 'runner.logs', '{"searchOnly": true}');
select pg_temp.claim('d1', 'lines', p_lane => 'search');
select pg_temp.refused('nothing_pending', pg_temp.proof('lines', 'd1', pg_temp.key('lines', 'q')), 'search facts are not for the ledger');

select * from finish();
rollback;
