-- What the holder of a lease may do with it, and nobody else.
begin;
\ir ../setup.psql
\ir setup.psql
select plan(52);

select pg_temp.quiet_run('r');
select pg_temp.fact('r', 'a' || i) from generate_series(1, 3) as i;

create function pg_temp.renewal(p_events text[], p_owner text default 'd1', p_run text default 'r')
returns text language sql as $function$
    select format('select counterfoil.renew_delivery(%L, %L, %L::text[], %L, 60, false)', 'acme', p_run, p_events, p_owner)
$function$;

select pg_temp.raises(pg_temp.renewal('{a1}'), 'RL004', 'delivery_lease_not_current', 'nobody has claimed it');
select is(pg_temp.claim('d1', 'r', 2), array['a1', 'a2'], 'claimed');
select lives_ok(pg_temp.renewal('{a1,a2}'), 'renewed');
select ok((pg_temp.lane('r')).lease_expires_at > clock_timestamp() + interval '55 seconds', 'for what was asked');
select pg_temp.raises(pg_temp.renewal('{a1}'), 'RL004', 'delivery_lease_not_current', 'not fewer facts');
select pg_temp.raises(pg_temp.renewal('{a1,a2,a3}'), 'RL004', 'delivery_lease_not_current', 'not more');
select pg_temp.raises(pg_temp.renewal('{a1,a3}'), 'RL004', 'delivery_lease_not_current', 'not others');
select pg_temp.raises(pg_temp.renewal('{a1,nothing}'), 'RL004', 'delivery_lease_not_current', 'nor such as do not exist');
select pg_temp.raises(pg_temp.renewal('{nothing}'), 'RL004', 'delivery_lease_not_current', 'nor only such');
select pg_temp.raises(pg_temp.renewal('{a1,a2}', 'd2'), 'RL004', 'delivery_lease_not_current', 'nor by another');
select pg_temp.raises(pg_temp.renewal('{a1,a2}', 'd1', 'x'), 'RL004', 'delivery_lease_not_current', 'nor in another run');
select pg_temp.raises(pg_temp.renewal('{}'), 'RL001', 'p_event_ids');
select pg_temp.raises(pg_temp.renewal('{a1,a1}'), 'RL001', 'p_event_ids');
select pg_temp.raises(pg_temp.renewal('{a1,null}'), 'RL001', 'p_event_ids');
select pg_temp.raises(pg_temp.renewal(null), 'RL001', 'p_event_ids');
select pg_temp.raises(pg_temp.renewal('{a1}', ''), 'RL001', 'p_lease_owner');
select pg_temp.raises(pg_temp.renewal('{a1}', 'd1', ''), 'RL001', 'p_run_id');
select counterfoil.renew_delivery('acme', 'r', array['a1', 'a2'], 'd1', 1, false);
select ok((pg_temp.lane('r')).lease_expires_at between clock_timestamp() + interval '4 seconds' and clock_timestamp() + interval '6 seconds', 'never under 5 s');
select counterfoil.renew_delivery('acme', 'r', array['a1', 'a2'], 'd1', 10000, false);
select ok((pg_temp.lane('r')).lease_expires_at between clock_timestamp() + interval '299 seconds' and clock_timestamp() + interval '301 seconds', 'never over 300 s');

-- Without the org.
select lives_ok($$ select counterfoil.renew_delivery(array['a1', 'a2'], 'd1', 60, true) $$, 'the facts alone say which');
select ok((pg_temp.lane('r')).receipt_key is not null, 'and freeze');
select pg_temp.raises($$ select counterfoil.renew_delivery(array['a1', 'a2'], 'd2') $$, 'RL004', 'delivery_lease_not_current');
select pg_temp.raises($$ select counterfoil.renew_delivery(array['nothing'], 'd1') $$, 'RL004', 'delivery_lease_not_current');
select pg_temp.quiet_run('r', 'other');
select pg_temp.fact('r', 'a1', p_org => 'other');
select lives_ok($$ select counterfoil.renew_delivery(array['a1', 'a2'], 'd1') $$, 'the lease tells two orgs with the same id apart');
select pg_temp.claim('d1', 'r', p_org => 'other');
select pg_temp.raises($$ select counterfoil.renew_delivery(array['a1'], 'd1') $$, 'RL001', 'p_event_ids', 'unless the owner holds both');
select counterfoil.acknowledge_delivery('other', 'r', array['a1'], 'd1');

-- Released.
select is(pg_temp.grid($$ select r.event_id from counterfoil.release_delivery('acme', 'r', array['a1', 'a2'], 'd2') as r $$), '[]', 'not by another');
select is((pg_temp.lane('r')).lease_owner, 'd1', 'whose lease it is not');
create temporary table released as select clock_timestamp() as at;
select is(
    pg_temp.grid($$ select r.event_id from counterfoil.release_delivery('acme', 'r', array['a2', 'a3', 'a1'], 'd1') as r $$), '[["a2"], ["a1"]]',
    'released: what was held'
);
select is(pg_temp.grid($$ select r.event_id from counterfoil.release_delivery('acme', 'r', array['a1', 'a2'], 'd1') as r $$), '[]', 'a repeat does no harm');
select is((select count(*) from counterfoil.fact_failures), 0::bigint, 'no attempt is charged');
select ok((pg_temp.lane('r')).due_at > t.at, 'it queues behind the others') from released as t;
select is(pg_temp.claim('d2', 'r'), array['a1', 'a2'], 'another may claim at once');
select is(pg_temp.grid($$ select r.event_id from counterfoil.release_delivery(array['a1', 'a2'], 'd2') as r $$), '[["a1"], ["a2"]]', 'without the org');
select is(pg_temp.grid($$ select r.event_id from counterfoil.release_delivery(array['nothing'], 'd2') as r $$), '[]', 'or nothing');
select pg_temp.claim('d1', 'r');
select pg_temp.expire('r');
select is(pg_temp.grid($$ select r.event_id from counterfoil.release_delivery('acme', 'r', array['a1', 'a2'], 'd1') as r $$), '[]', 'a lapsed lease releases nothing');

-- Released for later: due after a pause that grows with how long the first fact has waited, uncharged as ever.
create function pg_temp.later(p_waited interval) returns interval language plpgsql as $function$
declare
    v_lane counterfoil.lanes;
begin
    update counterfoil.outbox as o set created_at = clock_timestamp() - p_waited where o.run_id = 'r' and o.event_id = 'a1';
    update counterfoil.lanes as l set due_at = clock_timestamp() where l.run_id = 'r' and l.org_id = 'acme';
    perform pg_temp.claim('d1', 'r');
    perform counterfoil.release_delivery('acme', 'r', array['a1', 'a2'], 'd1', true);
    v_lane := pg_temp.lane('r');
    return case when v_lane.lease_owner is null then v_lane.due_at - clock_timestamp() end;
end
$function$;
select pg_temp.expire('r');
select ok(pg_temp.later('0') between '0.4 seconds' and '1 second', 'half a second to one');
select is(pg_temp.claim('d2', 'r'), '{}', 'nobody may claim meanwhile');
select ok(counterfoil.next_delivery_due_at('lifecycle', 'r', 'acme') > clock_timestamp(), 'and a dispatcher knows until when');
select ok(pg_temp.later('20 seconds') between '9.9 seconds' and '20.1 seconds', 'as long again as it has waited, or half of that');
select ok(pg_temp.later('1 day') between '29.9 seconds' and '60.1 seconds', 'a minute at most');
select is((select count(*) from counterfoil.fact_failures), 0::bigint, 'still uncharged');
-- Between what was delivered and the head lay a fact of the other lane, and retention has taken it.
select pg_temp.quiet_run('gap');
select pg_temp.fact('gap', 'g1');
select pg_temp.fact('gap', 'g2', 'runner.logs', '{"searchOnly": true}');
select pg_temp.fact('gap', 'g3');
select pg_temp.claim('d1', 'gap', 1);
select counterfoil.acknowledge_delivery('acme', 'gap', array['g1'], 'd1', 0);
select pg_temp.claim('d1', 'gap', p_lane => 'search');
select counterfoil.acknowledge_delivery('acme', 'gap', array['g2'], 'd1');
delete from counterfoil.outbox as o where o.run_id = 'gap' and o.event_id in ('g1', 'g2');
select is(pg_temp.claim('d1', 'gap'), array['g3'], 'the head need not be the next number');
select is(
    pg_temp.grid($$ select r.event_id from counterfoil.release_delivery('acme', 'gap', array['g3'], 'd1', true) as r $$), '[["g3"]]',
    'and is released for later all the same'
);
update counterfoil.lanes as l set due_at = clock_timestamp() where l.run_id = 'r' and l.org_id = 'acme';
select pg_temp.claim('d1', 'r');
select pg_temp.expire('r');

-- Lapsed: nothing can be written under it.
select pg_temp.raises(pg_temp.renewal('{a1,a2}'), 'RL004', 'delivery_lease_not_current', 'a lapsed lease is not renewed');
select pg_temp.raises($$ select counterfoil.acknowledge_delivery('acme', 'r', array['a1', 'a2'], 'd1') $$, 'RL004', 'delivery_lease_not_current', 'nor acknowledged under');
select is(
    pg_temp.grid($$ select s.event_id, s.outcome, s.next_attempt_at from counterfoil.settle_delivery_failure('acme', 'r', array['a1', 'a2'], 'd1', '{"message": "m"}') as s $$),
    '[["a1", "not_owned", null], ["a2", "not_owned", null]]', 'nor settled'
);
select is(
    pg_temp.grid($$ select a.acknowledged from counterfoil.acknowledge_deliveries(array['acme'], array['r'], 'lifecycle', array[4::bigint], 'd1') as a $$),
    '[[false]]', 'nor so by the form for many'
);
select is(
    pg_temp.grid($$ select a.renewed from counterfoil.renew_deliveries(array['acme'], array['r'], 'lifecycle', array[4::bigint], 'd1') as a $$),
    '[[false]]', 'nor renewed so'
);
select pg_temp.raises($$ select counterfoil.dispatch_authority_for_lease('acme', 'r', 'a1', 'd1') $$, 'RL004', 'delivery_lease_not_current', 'nor has it authority');
select pg_temp.raises($$ select counterfoil.widen_delivery('acme', 'r', 'a1', 'd1') $$, 'RL004', 'delivery_lease_not_current', 'nor is it widened');
select pg_temp.raises($$ select counterfoil.plan_delivery_pieces('acme', 'r', array['a1', 'a2'], 'd1') $$, 'RL004', 'delivery_lease_not_current', 'nor cut');
select is((pg_temp.lane('r')).head_seq, 3::bigint, 'nothing has moved');

select * from finish();
rollback;
