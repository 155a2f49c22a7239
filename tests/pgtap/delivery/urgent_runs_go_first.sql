-- Which lane a claim takes when many are ready, and what it passes over.
begin;
\ir ../setup.psql
\ir setup.psql
select plan(48);

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

-- In every kind of claim, what is leased, not due or blocked costs the others no place.
delete from counterfoil.lanes;
select pg_temp.quiet_run(n || 'x', 'acme') from unnest(array['held', 'later', 'stuck', 'free']) as n;
select pg_temp.fact(n || 'x', n, 'runner.logs', '{"searchOnly": true}') from unnest(array['held', 'later', 'stuck', 'free']) as n;
select pg_temp.fact(n || 'x', n || '-' || e, e) from unnest(array['held', 'later', 'stuck', 'free']) as n, unnest(array['run.progress']) as e;
-- Each lane is older, and more urgent, than the free one.
update counterfoil.lanes
set
    due_at = case when run_id = 'laterx' then clock_timestamp() + interval '1 hour' else clock_timestamp() - case when run_id = 'freex' then interval '1 hour' else interval '2 hours' end end,
    blocked_at = case when run_id = 'stuckx' then clock_timestamp() end,
    lease_owner = case when run_id = 'heldx' then 'h' end,
    lease_expires_at = case when run_id = 'heldx' then clock_timestamp() + interval '1 hour' end,
    lease_through_seq = case when run_id = 'heldx' then tail_seq end,
    priority = case when lane = 'lifecycle' and run_id <> 'freex' then 0 else priority end;
create temporary table before_claims as select l.* from counterfoil.lanes as l;
create function pg_temp.only_free(p_lane text, p_priority text, p_org text)
returns text language plpgsql volatile parallel unsafe as $function$
declare
    v_claimed text[] := pg_temp.claim('z', p_lane => p_lane, p_priority => p_priority, p_org => p_org);
    v_same boolean;
begin
    update counterfoil.lanes as l set lease_owner = null, lease_expires_at = null, lease_through_seq = null where l.lease_owner = 'z';
    select count(*) = 0 into v_same
    from counterfoil.lanes as l inner join before_claims as b using (org_id, run_id, lane)
    where (l.lease_owner, l.lease_expires_at) is distinct from (b.lease_owner, b.lease_expires_at);
    return is(
        (v_claimed, v_same), (array[case p_lane when 'search' then 'free' else 'free-run.progress' end], true),
        format('%s, %s, %s', p_lane, p_priority, coalesce(p_org, 'any org'))
    );
end
$function$;
select pg_temp.only_free(l, o, g)
from unnest(array['lifecycle', 'search']) as l, unnest(array['admission_first', 'oldest_ready']) as o, unnest(array['acme', null]) as g;

delete from counterfoil.lanes;
select pg_temp.quiet_run('both');
select pg_temp.fact('both', 'both-l');
select pg_temp.quiet_run('other');
select pg_temp.fact('other', 'other-q', 'runner.logs', '{"searchOnly": true}');
select is(pg_temp.claim('z', p_lane => 'search', p_org => 'acme'), array['other-q'], 'nor does the other lane');
update counterfoil.lanes set lease_owner = null, lease_expires_at = null, lease_through_seq = null;
select is(pg_temp.claim('z', p_lane => 'search', p_org => 'acme', p_priority => 'oldest_ready'), array['other-q'], 'in either order');

-- The order of one org's claims.
delete from counterfoil.lanes;
select pg_temp.quiet_run('o1');
select pg_temp.fact('o1', 'o1-p');
select pg_temp.quiet_run('o2');
select pg_temp.fact('o2', 'o2-w', 'run.waiting', '{"kind": "public"}');
select pg_temp.quiet_run('o3');
select pg_temp.end_run('o3');
select pg_temp.queued_run('o4');
select pg_temp.quiet_run('o0', 'other');
select pg_temp.fact('o0', 'o0-p', p_org => 'other');
select is(pg_temp.claim('z', p_max_runs => n, p_org => 'acme'), o, 'the first ' || n || ' of an org')
from (values
    (1, array['o4-created']), (1, array['o3-end']), (1, array['o2-w']), (1, array['o1-p']), (1, '{}'::text[])
) as w (n, o);
update counterfoil.lanes set lease_owner = null, lease_expires_at = null, lease_through_seq = null;
select is(pg_temp.claim('z', p_max_runs => 2, p_org => 'acme', p_priority => 'oldest_ready'), array['o1-p', 'o2-w'], 'or its oldest');

-- For how long.
select ok(
    (select bool_and(c.lease_expires_at between clock_timestamp() + interval '110 seconds' and clock_timestamp() + interval '121 seconds')
     from counterfoil.claim_deliveries('z', 120, p_max_runs => 9) as c), 'the lease that was asked for'
);
select ok((pg_temp.lane('o3')).lease_expires_at > clock_timestamp() + interval '110 seconds', 'is the lane''s');

select * from finish();
rollback;
