-- When a delivery is next due, and who may learn how to deliver it.
begin;
\ir ../setup.psql
\ir setup.psql
select plan(54);

select ok(counterfoil.next_delivery_due_at('lifecycle') is null, 'nothing is pending');
select ok(counterfoil.next_delivery_due_at('search') is null, 'in either lane');
select pg_temp.quiet_run('r');
select pg_temp.fact('r', 'a1');
select is(counterfoil.next_delivery_due_at('lifecycle'), (pg_temp.lane('r')).due_at, 'what can be claimed is due since it came');
select ok(counterfoil.next_delivery_due_at('search') is null, 'in its lane');
select is(counterfoil.next_delivery_due_at('lifecycle', 'r'), (pg_temp.lane('r')).due_at, 'for its run');
select is(counterfoil.next_delivery_due_at('lifecycle', 'r', 'acme'), (pg_temp.lane('r')).due_at, 'of its org');
select ok(counterfoil.next_delivery_due_at('lifecycle', 'x') is null, 'not for another run');
select ok(counterfoil.next_delivery_due_at('lifecycle', 'r', 'other') is null, 'nor in another org');
select is(counterfoil.next_delivery_due_at('lifecycle', null, 'acme'), (pg_temp.lane('r')).due_at, 'for an org');
select ok(counterfoil.next_delivery_due_at('lifecycle', null, 'other') is null, 'not for another one');
select pg_temp.claim('d1', 'r');
select is(counterfoil.next_delivery_due_at('lifecycle'), (pg_temp.lane('r')).lease_expires_at, 'what is leased is due when the lease lapses');
select is(counterfoil.next_delivery_due_at('lifecycle', 'r'), (pg_temp.lane('r')).lease_expires_at, 'for its run');
select is(counterfoil.next_delivery_due_at('lifecycle', null, 'acme'), (pg_temp.lane('r')).lease_expires_at, 'for its org');
select counterfoil.settle_delivery_failure('acme', 'r', array['a1'], 'd1', '{"message": "m"}');
select ok(counterfoil.next_delivery_due_at('lifecycle') > clock_timestamp(), 'what failed is due later');
select is(counterfoil.next_delivery_due_at('lifecycle'), (pg_temp.lane('r')).due_at, 'when its backoff ends');
select pg_temp.quiet_run('s');
select pg_temp.fact('s', 'b1');
select is(counterfoil.next_delivery_due_at('lifecycle'), (pg_temp.lane('s')).due_at, 'the earliest counts');
select pg_temp.end_run('s');
select is(counterfoil.next_delivery_due_at('lifecycle'), (pg_temp.lane('s')).due_at, 'of any urgency');
select pg_temp.claim('d1', 's');
update counterfoil.lanes set due_at = clock_timestamp() + interval '1 hour' where run_id = 'r';
select is(counterfoil.next_delivery_due_at('lifecycle', null, 'acme'), (pg_temp.lane('s')).lease_expires_at, 'a lease may lapse first, in an org');
select is(counterfoil.next_delivery_due_at('lifecycle'), (pg_temp.lane('s')).lease_expires_at, 'a lease may lapse before a backoff ends');
select pg_temp.fact('s', 'q1', 'runner.logs', '{"searchOnly": true}');
select is(counterfoil.next_delivery_due_at('search'), (pg_temp.lane('s', 'search')).due_at, 'the search lane for itself');
select pg_temp.claim('d1', 's', p_lane => 'search');
select is(counterfoil.next_delivery_due_at('search'), (pg_temp.lane('s', 'search')).lease_expires_at, 'with its leases');
-- What is blocked becomes due by nothing, and hides nothing that does.
create temporary table before as select l.* from counterfoil.lanes as l;
create function pg_temp.dues(p_lane text)
returns timestamptz[] language sql volatile parallel unsafe as $function$
  select array[
    counterfoil.next_delivery_due_at(p_lane), counterfoil.next_delivery_due_at(p_lane, null, 'acme'),
    counterfoil.next_delivery_due_at(p_lane, 's', 'acme')
  ]
$function$;
update counterfoil.lanes
set lease_owner = null, lease_expires_at = null, lease_through_seq = null, blocked_at = clock_timestamp(), due_at = '2020-01-01';
select is(pg_temp.dues(l), '{null,null,null}', 'all blocked: ' || l) from unnest(array['lifecycle', 'search']) as l;
insert into counterfoil.lanes
select (jsonb_populate_record(l, '{"run_id": "u", "blocked_at": null, "due_at": "2021-01-01"}')).*
from counterfoil.lanes as l where l.run_id = 's';
select is(pg_temp.dues(l), '{2021-01-01,2021-01-01,null}', 'all but one: ' || l) from unnest(array['lifecycle', 'search']) as l;
delete from counterfoil.lanes;
insert into counterfoil.lanes select b.* from before as b;
-- The one question of a dispatcher without work: all its lanes, and that it is still there.
create function pg_temp.look(p_lanes text[], p_listeners text[] default null)
returns jsonb language sql volatile parallel unsafe as $function$
  select jsonb_agg(jsonb_build_array(l.lane, l.due_at = counterfoil.next_delivery_due_at(l.lane)))
  from counterfoil.look_for_deliveries(p_lanes, p_listeners) as l
$function$;
select is(pg_temp.look('{search,lifecycle}'), '[["search", true], ["lifecycle", true]]', 'of each lane, in the order asked');
select is(pg_temp.look('{lifecycle}'), '[["lifecycle", true]]', 'or of one');
select is(counterfoil.start_listening('me:' || q.queue, q.queue, 20) is not null, true, 'registered') from (values ('lifecycle'), ('search')) as q (queue);
select pg_temp.look('{search,lifecycle}', array[null, 'me:lifecycle']);
select is(
    (
        select jsonb_object_agg(l.queue, l.asleep_until > clock_timestamp() + interval '50 seconds')
        from counterfoil.listeners as l where l.listener like 'me:%'
    ),
    '{"lifecycle": true, "search": false}', 'the listener that was named is kept, and no other'
);
update counterfoil.listeners set asleep_until = clock_timestamp() - interval '1 hour';
select pg_temp.look('{search}', '{me:search}');
select ok(l.asleep_until > clock_timestamp() + interval '50 seconds', 'one that was stopped for a while is registered again')
from counterfoil.listeners as l where l.listener = 'me:search';
select pg_temp.raises($$ select counterfoil.look_for_deliveries('{}', '{}') $$, 'RL001', 'p_lanes');
select pg_temp.raises($$ select counterfoil.look_for_deliveries(null, null) $$, 'RL001', 'p_lanes');
select pg_temp.raises($$ select counterfoil.look_for_deliveries('{fast}', null) $$, 'RL001', 'p_lane');
select pg_temp.quiet_run('t' || i, 'org' || i % 2) from generate_series(1, 4) as i;
select pg_temp.fact('t' || i, 't' || i, p_org => 'org' || i % 2) from generate_series(1, 4) as i;
select pg_temp.fact('t1', 'tq', 'runner.logs', '{"searchOnly": true}', p_org => 'org1');
select results_eq('select * from counterfoil.list_pending_orgs()', array['acme', 'org0', 'org1'], 'each org with something pending, once');
delete from counterfoil.lanes where org_id ~ '^org';
select pg_temp.raises($$ select counterfoil.next_delivery_due_at(null) $$, 'RL001', 'p_lane');
select pg_temp.raises($$ select counterfoil.next_delivery_due_at('fast') $$, 'RL001', 'p_lane');
select pg_temp.raises($$ select counterfoil.next_delivery_due_at('search', '') $$, 'RL001', 'p_run_id');
select pg_temp.raises($$ select counterfoil.next_delivery_due_at('search', null, '') $$, 'RL001', 'p_org_id');

-- Authority.
select is(counterfoil.dispatch_authority_for_lease('acme', 's', 'b1', 'd1'), '{"orgId": "acme", "runId": "s", "executorToken": "stored-token"}', 'the holder gets the narrow authority');
select is(counterfoil.dispatch_launch_for_lease('acme', 's', 's-end', 'd1') -> 'input', '{"rows": 3}', 'or the whole launch, for any fact it holds');
select pg_temp.raises($$ select counterfoil.dispatch_authority_for_lease('acme', 's', 'b1', 'd2') $$, 'RL004', 'head_lease_owner_mismatch', 'another does not');
select pg_temp.raises($$ select counterfoil.dispatch_launch_for_lease('acme', 's', 'b1', 'd2') $$, 'RL004', 'head_lease_owner_mismatch');
select pg_temp.raises($$ select counterfoil.dispatch_authority_for_lease('acme', 's', 's-started', 'd1') $$, 'RL004', 'delivery_lease_not_current', 'not for what is delivered');
select pg_temp.raises($$ select counterfoil.dispatch_authority_for_lease('acme', 's', 'nothing', 'd1') $$, 'RL002', 'fact_not_found');
select pg_temp.raises($$ select counterfoil.dispatch_authority_for_lease('other', 's', 'b1', 'd1') $$, 'RL002', 'fact_not_found', 'not in another org');
select pg_temp.expire('s');
select pg_temp.raises($$ select counterfoil.dispatch_authority_for_lease('acme', 's', 'b1', 'd1') $$, 'RL004', 'delivery_lease_not_current', 'nor past its lease');
select pg_temp.raises($$ select counterfoil.dispatch_authority_for_lease('acme', 's', 'b1', 'd2') $$, 'RL004', 'delivery_lease_not_current', 'nobody holds it then');
select pg_temp.raises($$ select counterfoil.dispatch_launch_for_lease('acme', 's', 'b1', 'd1') $$, 'RL004', 'delivery_lease_not_current');
select pg_temp.raises($$ select counterfoil.dispatch_launch_for_lease('acme', null, 'b1', 'd1') $$, 'RL001', 'p_run_id');
select pg_temp.raises($$ select counterfoil.delivery_status('acme', 's', '') $$, 'RL001', 'p_event_id');

-- Keys.
select is(pg_temp.key('s', 'b1'), 'events:s:' || encode(sha256(convert_to((select o.delivery_key::text from counterfoil.outbox as o where o.event_id = 'b1'), 'UTF8')), 'hex'), 'a key without a terminal');
select pg_temp.raises($$ select counterfoil.delivery_idempotency_key('acme', 's', array['b1', 'nothing']) $$, 'RL002', 'fact_not_found');
select pg_temp.raises($$ select counterfoil.delivery_idempotency_key('acme', 's', array['b1', 'q1']) $$, 'RL001', 'p_event_ids', 'facts of two lanes have none');

select * from finish();
rollback;
