-- What is acknowledged, by whom, and what is claimed in the same transaction.
begin;
\ir ../setup.psql
\ir setup.psql
select plan(63);

create function pg_temp.ack(p_run text, p_events text[], p_owner text default 'd1', p_allowance integer default 0, p_allow boolean default false)
returns text language sql as $function$
    select format('select a.kind, a.event_id from counterfoil.acknowledge_delivery(%L, %L, %L::text[], %L, %L, 30, %L) as a',
        'acme', p_run, p_events, p_owner, p_allowance, p_allow)
$function$;

-- Continuation.
select pg_temp.quiet_run('c');
select pg_temp.fact('c', 'c' || i) from generate_series(1, 6) as i;
select pg_temp.claim('d1', 'c', 2);
select is(pg_temp.grid(pg_temp.ack('c', '{c1,c2}', 'd1', 2)),
    '[["acknowledged", "c1"], ["acknowledged", "c2"], ["claimed", "c3"], ["claimed", "c4"]]', 'the successor prefix, within the allowance');
select is((pg_temp.lane('c')).lease_owner, 'd1', 'is the same owner''s');
select is(pg_temp.claim('d2', 'c'), '{}', 'and was never anyone else''s');
select is(pg_temp.grid(pg_temp.ack('c', '{c1,c2}', 'd1', 2)),
    '[["acknowledged", "c1"], ["acknowledged", "c2"], ["claimed", "c3"], ["claimed", "c4"]]', 'a repeat after a lost reply answers the same');
select is(pg_temp.grid(pg_temp.ack('c', '{c3,c4}')), '[["acknowledged", "c3"], ["acknowledged", "c4"]]', 'no allowance claims nothing');
select ok((pg_temp.lane('c')).lease_owner is null, 'and holds nothing');
select is(pg_temp.grid(pg_temp.ack('c', '{c3,c4}')), '[["acknowledged", "c3"], ["acknowledged", "c4"]]', 'its repeat too');
select pg_temp.raises(pg_temp.ack('c', '{c3,c4}', 'd2'), 'RL004', 'delivery_lease_not_current', 'but not for another');
select pg_temp.claim('d1', 'c', 1);
select is(pg_temp.grid(pg_temp.ack('c', '{c5}', 'd1', null)), '[["acknowledged", "c5"], ["claimed", "c6"]]', 'null is an allowance without bound');
select is(pg_temp.grid(pg_temp.ack('c', '{c6}', 'd1', null)), '[["acknowledged", "c6"]]', 'at the end there is nothing more');
select is(pg_temp.grid(pg_temp.ack('c', '{c6}', 'd1', 5)), '[["acknowledged", "c6"]]', 'nor for its repeat');
select pg_temp.raises(pg_temp.ack('c', '{c6}', 'd1', -1), 'RL001', 'p_continuation_allowance');

update counterfoil.settings set value = '2' where name = 'prefix_max_facts';
select pg_temp.quiet_run('d');
select pg_temp.fact('d', 'd' || i) from generate_series(1, 5) as i;
select pg_temp.fact('d', 'dw', 'run.waiting', '{"kind": "public"}');
select pg_temp.claim('d1', 'd', 1);
update counterfoil.lanes set due_at = clock_timestamp() - interval '1 hour' where run_id = 'd';
select is(pg_temp.grid(pg_temp.ack('d', '{d1}', 'd1', 9)), '[["acknowledged", "d1"], ["claimed", "d2"], ["claimed", "d3"]]', 'never over prefix_max_facts');
update counterfoil.settings set value = null where name = 'prefix_max_facts';
select ok((pg_temp.lane('d')).due_at > clock_timestamp() - interval '1 minute', 'what is left queues behind the others');
select is(((pg_temp.lane('d')).priority, (pg_temp.lane('d')).wait_seq), (2::smallint, 8::bigint), 'as urgent as the wait that is still to come');
create function pg_temp.through(p_seq bigint)
returns boolean language sql volatile parallel unsafe as $function$
    select a.acknowledged from counterfoil.acknowledge_deliveries(array['acme'], array['d'], 'lifecycle', array[p_seq], 'd1') as a
$function$;
select ok(not pg_temp.through(6), 'the form for many acknowledges nothing past what is held');
select ok(not pg_temp.through(8), 'not even the last that there is');
select ok(pg_temp.through(3), 'and knows what it has acknowledged');
select is((pg_temp.lane('d')).head_seq, 4::bigint, 'none of which moved anything');

select pg_temp.quiet_run('b');
select pg_temp.fact('b', 'b0');
select pg_temp.fact('b', 'b1', 'run.events');
select pg_temp.fact('b', 'b2', 'run.events');
select pg_temp.end_run('b');
select pg_temp.claim('d1', 'b');
select is(pg_temp.grid(pg_temp.ack('b', '{b0}', 'd1', 64)), '[["acknowledged", "b0"], ["claimed", "b1"]]', 'batches continue singly');
select is((pg_temp.lane('b')).priority, 1::smallint, 'as urgent as the terminal that is still to come');
select is(pg_temp.grid(pg_temp.ack('b', '{b1}', 'd1', 64, true)), '[["acknowledged", "b1"], ["claimed", "b2"], ["claimed", "b-end"]]', 'or combined, through the terminal');

-- What is delivered is urgent no more.
select pg_temp.quiet_run('t');
select pg_temp.fact('t', 't1', 'run.waiting', '{"reason": "x"}');
select pg_temp.end_run('t');
select pg_temp.fact('t', 't2', 'runner.logs');
select pg_temp.claim('d1', 't');
select is(pg_temp.grid(pg_temp.ack('t', '{t1,t-end}')), '[["acknowledged", "t1"], ["acknowledged", "t-end"]]', 'a wait and an end are delivered');
select is(
    pg_temp.grid($$ select l.terminal_seq, l.wait_seq, l.priority from counterfoil.lanes as l where l.run_id = 't' $$), '[[null, null, 3]]',
    'the logs behind them are like any'
);

-- What may be acknowledged.
select pg_temp.quiet_run('p');
select pg_temp.fact('p', 'p' || i) from generate_series(1, 5) as i;
select pg_temp.fact('p', 'q', 'runner.logs', '{"searchOnly": true}');
select pg_temp.claim('d1', 'p', 3);
select pg_temp.raises(pg_temp.ack('p', '{p2,p3}'), 'RL004', 'receipt_boundary_mismatch', 'not without the head');
select pg_temp.raises(pg_temp.ack('p', '{p1,p3}'), 'RL004', 'receipt_boundary_mismatch', 'not with a gap');
select pg_temp.raises(pg_temp.ack('p', '{p4}'), 'RL004', 'delivery_lease_not_current', 'not what is not leased');
select pg_temp.raises(pg_temp.ack('p', '{nothing}'), 'RL004', 'delivery_lease_not_current', 'nor what does not exist');
select pg_temp.raises(pg_temp.ack('p', '{p1,q}'), 'RL001', 'p_event_ids', 'nor two lanes at once');
select pg_temp.raises(pg_temp.ack('p', '{}'), 'RL001', 'p_event_ids');
select is((pg_temp.lane('p')).head_seq, 3::bigint, 'none of which moved anything');
select is(pg_temp.grid(pg_temp.ack('p', '{p2,p1,p3,p4,nothing}', 'd1', 64)),
    '[["acknowledged", "p2"], ["acknowledged", "p1"], ["acknowledged", "p3"], ["not_owned", "p4"], ["not_owned", "nothing"]]',
    'what is owned in part is acknowledged in part, said so, and not continued');
select is((pg_temp.lane('p')).head_seq, 6::bigint, 'the head is past it');
select is(pg_temp.claim('d2', 'p'), array['p4', 'p5'], 'the rest is anybody''s');
select is(pg_temp.grid(pg_temp.ack('p', '{p3,p4}', 'd1')), '[["acknowledged", "p3"], ["not_owned", "p4"]]', 'also to the former owner, who still knows what it did');
select is(pg_temp.grid(pg_temp.ack('p', '{p4}', 'd2')), '[["acknowledged", "p4"]]', 'a beginning of what is held may go first');
select is(counterfoil.delivery_status('acme', 'p', 'p5'), 'pending', 'the rest waits');
select pg_temp.claim('s', 'p', p_lane => 'search');
select is(pg_temp.grid(pg_temp.ack('p', '{q}', 's')), '[["acknowledged", "q"]]', 'the search lane is acknowledged for itself');
select ok(pg_temp.lane('p', 'search') is null, 'and ends for itself');
select is((pg_temp.lane('p')).tail_seq, 7::bigint, 'without the other');

-- What is written meanwhile.
select pg_temp.quiet_run('w');
select pg_temp.fact('w', 'w1');
select pg_temp.claim('d1', 'w');
select pg_temp.fact('w', 'w2');
select is(pg_temp.grid(pg_temp.ack('w', '{w1}')), '[["acknowledged", "w1"]]', 'a fact that came after the claim');
select is((pg_temp.lane('w')).head_seq, 4::bigint, 'is left');

-- Many lanes at once.
select pg_temp.quiet_run('m' || i) from generate_series(1, 4) as i;
select pg_temp.fact('m' || i, 'm' || i || '-' || j) from generate_series(1, 4) as i, generate_series(1, 3) as j;
update counterfoil.lanes set due_at = '-infinity' where run_id like 'm_';
select pg_temp.claim('d1', p_max_runs => 4, p_limit => 2);
select is(
    pg_temp.grid($$ select r.run_id, r.renewed, r.idempotency_key = pg_temp.key(r.run_id, r.run_id || '-1', r.run_id || '-2'), r.frozen_at is not null
        from counterfoil.renew_deliveries(array_fill('acme'::text, array[4]), array['m2', 'm1', 'm3', 'm4'], 'lifecycle', array[4, 4, 3, 4]::bigint[], 'd1', 60, true) as r $$),
    '[["m2", true, true, true], ["m1", true, true, true], ["m3", false, null, false], ["m4", true, true, true]]',
    'many are frozen in one call; a position that is not the end of the lease is not'
);
select is(
    pg_temp.grid($$ select r.run_id, r.acknowledged from counterfoil.acknowledge_deliveries(
        array_fill('acme'::text, array[5]), array['m3', 'm4', 'nobody', 'm1', 'm2'], 'lifecycle', array[3, 4, 9, 3, 4]::bigint[], 'd1') as r $$),
    '[["m3", true], ["m4", true], ["nobody", false], ["m1", false], ["m2", true]]', 'many are acknowledged in one call; a part of a frozen receipt is not'
);
select is(
    pg_temp.grid($$ select l.run_id, l.head_seq, l.lease_owner from counterfoil.lanes as l where l.run_id like 'm_' order by 1 $$),
    '[["m1", 3, "d1"], ["m2", 5, null], ["m3", 4, null], ["m4", 5, null]]', 'each for itself'
);
select is(
    pg_temp.grid($$ select r.run_id, r.acknowledged from counterfoil.acknowledge_deliveries(
        array['acme', 'acme'], array['m3', 'm4'], 'lifecycle', array[3, 4]::bigint[], 'd1') as r $$),
    '[["m3", true], ["m4", true]]', 'and a repeat knows it'
);
select is(
    pg_temp.grid($$ select r.acknowledged from counterfoil.acknowledge_deliveries(array['acme'], array['m3'], 'lifecycle', array[3]::bigint[], 'd2') as r $$),
    '[[false]]', 'if it is the owner''s'
);

-- Frozen again, and what is not to be frozen.
select pg_temp.quiet_run('n' || i) from generate_series(1, 2) as i;
select pg_temp.fact('n1', 'n1-1');
select pg_temp.fact('n2', 'n2-1', 'run.progress', '{"deferredProjection": true}');
select pg_temp.claim('d3', 'n' || i) from generate_series(1, 2) as i;
create function pg_temp.frozen(p_seconds integer, p_freeze boolean default true)
returns jsonb language sql volatile parallel unsafe as $function$
    select jsonb_agg(r.renewed) from counterfoil.renew_deliveries(
        array['acme', 'acme'], array['n1', 'n2'], 'lifecycle', array[3, 3]::bigint[], 'd3', p_seconds, p_freeze) as r
$function$;
select is(pg_temp.frozen(30), '[true, false]', 'what has not been materialised is not frozen');
select is(pg_temp.frozen(200, false), '[true, true]', 'but renewed');
create temporary table once as select pg_temp.lane('n1') as lane;
select ok((o.lane).lease_expires_at > clock_timestamp() + interval '190 seconds', 'for what was asked') from once as o;
update counterfoil.settings set value = '7' where name = 'delivery_piece_max_events';
update counterfoil.settings set value = '7777' where name = 'delivery_piece_max_bytes';
select pg_temp.frozen(30);
update counterfoil.settings set value = null where name like 'delivery_piece%';
select is(
    to_jsonb(pg_temp.lane('n1')) - array['lease_expires_at'], to_jsonb(o.lane) - array['lease_expires_at'],
    'a second freeze keeps the first''s key, time and pieces'
) from once as o;

create function pg_temp.many(p_orgs text, p_runs text, p_seqs text, p_owner text default 'd1', p_lane text default 'lifecycle')
returns text language sql as $function$
    select format('select counterfoil.acknowledge_deliveries(%L::text[], %L::text[], %L, %L::bigint[], %L)', p_orgs, p_runs, p_lane, p_seqs, p_owner)
$function$;
select pg_temp.raises(pg_temp.many('{}', '{}', '{}'), 'RL001', 'p_org_ids');
select pg_temp.raises(pg_temp.many('{{a},{a}}', '{m1,m2}', '{1,2}'), 'RL001', 'p_org_ids');
select pg_temp.raises(pg_temp.many('{a,a}', '{{m1,m2}}', '{1,2}'), 'RL001', 'p_run_ids');
select pg_temp.raises(pg_temp.many('{a,a}', '{m1,m2}', '{{1,2}}'), 'RL001', 'p_through_seqs');
select pg_temp.raises(pg_temp.many('{a,a}', '{m1}', '{1,2}'), 'RL001', 'p_run_ids');
select pg_temp.raises(pg_temp.many('{a,a}', '{m1,m2}', '{1}'), 'RL001', 'p_through_seqs');
select pg_temp.raises(pg_temp.many('{a,null}', '{m1,m2}', '{1,2}'), 'RL001', 'p_org_ids');
select pg_temp.raises(pg_temp.many('{a,a}', '{m1,null}', '{1,2}'), 'RL001', 'p_run_ids');
select pg_temp.raises(pg_temp.many('{a,a}', '{m1,m2}', '{1,null}'), 'RL001', 'p_through_seqs');
select pg_temp.raises(pg_temp.many('{a,a}', '{m1,m1}', '{1,2}'), 'RL001', 'p_run_ids');
select pg_temp.raises(pg_temp.many('{a}', '{m1}', '{1}', ''), 'RL001', 'p_lease_owner');
select pg_temp.raises(pg_temp.many('{a}', '{m1}', '{1}', 'd1', 'fast'), 'RL001', 'p_lane');

select * from finish();
rollback;
