-- What a failed delivery costs its facts, and when they are due again.
begin;
\ir ../setup.psql
\ir setup.psql
select plan(65);

create function pg_temp.settle(p_run text, p_events text[], p_error jsonb default '{"message": "503", "retryable": true}', p_owner text default 'd1')
returns text language sql as $function$
    select format('select s.event_id, s.outcome from counterfoil.settle_delivery_failure(%L, %L, %L::text[], %L, %L::jsonb) as s',
        'acme', p_run, p_events, p_owner, p_error)
$function$;

select pg_temp.quiet_run('r');
select pg_temp.fact('r', 'a' || i) from generate_series(1, 4) as i;
select pg_temp.claim('d1', 'r', 3);
create temporary table t as select clock_timestamp() as at;
select is(pg_temp.grid(pg_temp.settle('r', '{a1,a2,a3,a4,nothing}')),
    '[["a1", "retrying"], ["a2", "retrying"], ["a3", "retrying"], ["a4", "not_owned"], ["nothing", "not_owned"]]', 'each fact that was held is charged');
select is((select count(distinct x.next_attempt_at) from counterfoil.fact_failures as x), 1::bigint, 'all are due together');
select is((pg_temp.lane('r')).due_at, (select max(x.next_attempt_at) from counterfoil.fact_failures as x), 'and with them their lane');
select ok((pg_temp.lane('r')).lease_owner is null, 'the lease is given back');
select is((pg_temp.lane('r')).failures, 3, 'the lane knows how many');
select ok(x.next_attempt_at between t.at + interval '500 milliseconds' and clock_timestamp() + interval '1 second', 'after one failure half a second to one')
from counterfoil.fact_failures as x, t where x.event_id = 'a1';
select is(x.last_error, '{"message": "503", "retryable": true}', 'with the error') from counterfoil.fact_failures as x where x.event_id = 'a1';
select is(pg_temp.grid(pg_temp.settle('r', '{a1}')), '[["a1", "not_owned"]]', 'a repeat charges nothing');
select is((select x.attempts from counterfoil.fact_failures as x where x.event_id = 'a1'), 1, 'twice');

-- Backoff grows, with chance, to a bound.
select pg_temp.make_due('r');
update counterfoil.fact_failures set attempts = 5 where event_id = 'a2';
select pg_temp.claim('d1', 'r', 3);
update t set at = clock_timestamp();
select pg_temp.grid(pg_temp.settle('r', '{a1,a2,a3}'));
select ok(min(x.next_attempt_at) >= max(t.at) + interval '16 seconds' and max(x.next_attempt_at) <= clock_timestamp() + interval '32 seconds',
    'the sixth failure of one makes all wait 16 to 32 s') from counterfoil.fact_failures as x, t;
select is((select count(distinct x.next_attempt_at) from counterfoil.fact_failures as x), 1::bigint, 'the latest of their times is everyone''s');
update counterfoil.settings set value = '10000' where name = 'delivery_backoff_max_ms';
select pg_temp.make_due('r');
select pg_temp.claim('d1', 'r', 3);
select pg_temp.grid(pg_temp.settle('r', '{a1,a2,a3}'));
select ok((pg_temp.lane('r')).due_at <= clock_timestamp() + interval '10 seconds', 'never over delivery_backoff_max_ms');

-- Chance keeps those that failed together from coming back together.
select pg_temp.quiet_run('j' || i) from generate_series(1, 20) as i;
select pg_temp.fact('j' || i, 'j' || i) from generate_series(1, 20) as i;
select pg_temp.claim('d1', 'j' || i) from generate_series(1, 20) as i;
select pg_temp.grid(pg_temp.settle('j' || i, array['j' || i])) from generate_series(1, 20) as i;
create temporary table waits as
select extract(epoch from x.next_attempt_at - x.last_failed_at) as seconds from counterfoil.fact_failures as x where x.event_id ~ '^j';
select ok(max(w.seconds) - min(w.seconds) > 0.05, 'twenty runs that failed alike wait for different times') from waits as w;
select ok(min(w.seconds) >= 0.5 and max(w.seconds) <= 1, 'none less than half of the backoff') from waits as w;

-- Only what failed is charged, and only it waits.
select pg_temp.quiet_run('o');
select pg_temp.fact('o', 'o' || i) from generate_series(1, 2) as i;
select pg_temp.claim('d1', 'o');
select pg_temp.grid(pg_temp.settle('o', '{o1,o2}', '{"message": "first", "code": "one"}'));
select pg_temp.make_due('o');
update counterfoil.fact_failures set last_failed_at = '-infinity' where run_id = 'o';
create temporary table o2 as select x.* from counterfoil.fact_failures as x where x.event_id = 'o2';
select pg_temp.claim('d1', 'o', 1);
select pg_temp.grid(pg_temp.settle('o', '{o1}', jsonb_build_object('message', 'second', 'code', repeat('c', 300))));
select is(to_jsonb(x), to_jsonb(o), 'a fact that was not in the delivery is as it was') from counterfoil.fact_failures as x, o2 as o where x.event_id = 'o2';
select is(x.last_error ->> 'message', 'second', 'the latest error is kept') from counterfoil.fact_failures as x where x.event_id = 'o1';
select is(length(x.last_error ->> 'code'), 200, 'its code bounded') from counterfoil.fact_failures as x where x.event_id = 'o1';
select ok(x.last_failed_at > '-infinity', 'and its time') from counterfoil.fact_failures as x where x.event_id = 'o1';

-- A failure does not take the hurry out of a run.
select pg_temp.quiet_run('u');
select pg_temp.fact('u', 'u1');
select pg_temp.fact('u', 'u2', 'run.waiting', '{"kind": "public"}');
select pg_temp.claim('d1', 'u', 1);
select pg_temp.grid(pg_temp.settle('u', '{u1}'));
select is(((pg_temp.lane('u')).priority, (pg_temp.lane('u')).wait_seq), (2::smallint, 4::bigint), 'a public wait behind it');
select pg_temp.end_run('u');
select pg_temp.make_due('u');
select pg_temp.claim('d1', 'u', 1);
select pg_temp.grid(pg_temp.settle('u', '{u1}'));
select is(((pg_temp.lane('u')).priority, (pg_temp.lane('u')).terminal_seq), (1::smallint, 5::bigint), 'an end behind it');

-- A frozen receipt waits for each of its facts.
select pg_temp.quiet_run('w');
select pg_temp.fact('w', 'w' || i) from generate_series(1, 2) as i;
select pg_temp.claim('d1', 'w');
select pg_temp.freeze('w', array['w1', 'w2']);
select pg_temp.grid(pg_temp.settle('w', '{w1,w2}', '{"message": "m", "eventId": "w2"}'));
select is((pg_temp.lane('w')).due_at, x.next_attempt_at, 'even where only a later one failed') from counterfoil.fact_failures as x where x.event_id = 'w2';
select is(pg_temp.claim('d1', 'w'), '{}', 'it does not go in part');
update counterfoil.lanes set due_at = clock_timestamp() where run_id = 'w';
select is(pg_temp.claim('d1', 'w', 1), '{}', 'nor where p_limit ends before the fact that waits');
select pg_temp.make_due('w');
select is(pg_temp.claim('d1', 'w'), array['w1', 'w2'], 'but whole');
select pg_temp.grid(pg_temp.settle('w', '{w1,w2}', '{"message": "m", "eventId": "w1"}'));
select is((pg_temp.lane('w')).due_at, x.next_attempt_at, 'the latest of their times counts, whichever fact has it')
from counterfoil.fact_failures as x where x.event_id = 'w1';

-- What is not frozen does not wait for a fact that comes later.
select pg_temp.quiet_run('v');
select pg_temp.fact('v', 'v' || i) from generate_series(1, 3) as i;
select pg_temp.claim('d1', 'v');
select pg_temp.grid(pg_temp.settle('v', '{v1,v2,v3}', '{"message": "m", "eventId": "v3"}'));
select is(pg_temp.claim('d1', 'v'), array['v1', 'v2'], 'its predecessors go at once');

-- A start that failed is as urgent as before.
select pg_temp.queued_run('z');
select pg_temp.claim('d1', 'z');
select is(pg_temp.grid(pg_temp.settle('z', '{z-created}')), '[["z-created", "retrying"]]', 'a start fails');
select is((pg_temp.lane('z')).priority, 0::smallint, 'and still comes first');

-- Facts of another run are not this delivery's, whatever lane they wait in.
select pg_temp.fact('v', 'v4', 'runner.logs', '{"searchOnly": true}');
select is(pg_temp.grid(pg_temp.settle('z', '{z-created,v4}')), '[["z-created", "not_owned"], ["v4", "not_owned"]]', 'nor do they make it one of two lanes');

-- The last attempt.
select pg_temp.quiet_run('l');
select pg_temp.fact('l', 'b1');
select pg_temp.fact('l', 'b2');
select pg_temp.claim('d1', 'l', 1);
select pg_temp.grid(pg_temp.settle('l', '{b1}'));
update counterfoil.fact_failures set attempts = 10 where event_id = 'b1';
select pg_temp.make_due('l');
select is(pg_temp.claim('d1', 'l', 64), array['b1', 'b2'], 'a fact that comes anew goes with one that failed before');
select is(pg_temp.grid(pg_temp.settle('l', '{b1,b2}')), '[["b1", "retrying"], ["b2", "retrying"]]', 'the eleventh failure is not the last');
select pg_temp.make_due('l');
select pg_temp.claim('d1', 'l', 64);
select is(pg_temp.grid(pg_temp.settle('l', '{b1,b2}')), '[["b1", "blocked"], ["b2", "retrying"]]', 'the twelfth is');
select ok((pg_temp.lane('l')).blocked_at is not null, 'a blocked head blocks the lane');
select pg_temp.make_due('l');
select is(pg_temp.claim('d1', 'l'), '{}', 'for targeted claims');
-- However long all this has taken, no other run's backoff ends here.
update counterfoil.lanes set due_at = clock_timestamp() + interval '1 hour' where run_id <> 'l';
select is(pg_temp.claim('d1', p_max_runs => 100), '{}', 'and for any');
select is(pg_temp.claim('d1', p_max_runs => 100, p_org => 'acme', p_priority => 'oldest_ready'), '{}', 'in any order');
select is(counterfoil.delivery_status('acme', 'l', 'b1'), 'blocked', 'it is blocked');
select is(counterfoil.delivery_status('acme', 'l', 'b2'), 'blocked', 'and so is what comes after it');
select ok(counterfoil.next_delivery_due_at('lifecycle', 'l') is null, 'it will not become due by itself');
select pg_temp.end_run('l');
select is(pg_temp.claim('d1', 'l'), '{}', 'an end changes nothing about it');

-- Errors that a retry cannot mend.
select pg_temp.quiet_run('f');
select pg_temp.fact('f', 'f1');
select pg_temp.fact('f', 'f2');
select pg_temp.claim('d1', 'f');
select is(pg_temp.grid(pg_temp.settle('f', '{f1,f2}', '{"message": "refused", "code": "bad", "status": 422, "retryable": false}')),
    '[["f1", "blocked"], ["f2", "blocked"]]', 'block at once');
select is(x.last_error, '{"message": "refused", "code": "bad", "status": 422, "retryable": false}', 'and say why')
from counterfoil.fact_failures as x where x.event_id = 'f2';

-- An invalid projection is one fact's.
select pg_temp.quiet_run('i');
select pg_temp.fact('i', 'i' || n) from generate_series(1, 4) as n;
select pg_temp.claim('d1', 'i');
select is(pg_temp.grid(pg_temp.settle('i', '{i1,i2,i3,i4}', '{"message": "malformed", "retryable": false, "eventId": "i3"}')),
    '[["i1", "retrying"], ["i2", "retrying"], ["i3", "blocked"], ["i4", "retrying"]]', 'blocks only the bad fact');
select is((select count(*) from counterfoil.fact_failures as x where x.run_id = 'i'), 1::bigint, 'the others are charged nothing');
select is(counterfoil.delivery_status('acme', 'i', 'i2'), 'pending', 'its predecessors are free');
select is(counterfoil.delivery_status('acme', 'i', 'i4'), 'blocked', 'its successors wait');
select is(pg_temp.claim('d1', 'i'), array['i1', 'i2'], 'the predecessors are delivered');
select counterfoil.acknowledge_delivery('acme', 'i', array['i1', 'i2'], 'd1');
select ok((pg_temp.lane('i')).blocked_at is not null, 'up to it');
select is(pg_temp.claim('d1', 'i'), '{}', 'and no further');

-- A failure that passed leaves no trace.
select pg_temp.quiet_run('g');
select pg_temp.fact('g', 'g1');
select pg_temp.fact('g', 'g2');
select pg_temp.claim('d1', 'g', 1);
select pg_temp.grid(pg_temp.settle('g', '{g1}'));
select pg_temp.make_due('g');
select pg_temp.claim('d1', 'g', 1);
select counterfoil.acknowledge_delivery('acme', 'g', array['g1'], 'd1');
select is((select count(*) from counterfoil.fact_failures as x where x.run_id = 'g'), 0::bigint, 'delivered after all, it has no failure');
select is((pg_temp.lane('g')).failures, 0, 'nor has the lane');
select is(pg_temp.claim('d1', 'g'), array['g2'], 'which goes on');

-- No secret, no payload, no novel.
select pg_temp.quiet_run('s');
select pg_temp.fact('s', 's1');
select pg_temp.claim('d1', 's');
select pg_temp.grid(pg_temp.settle('s', '{s1}', jsonb_build_object(
    'message', 'Authorization: Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl ' || repeat('x', 2000), 'payload', 'secret')));
select ok(x.last_error::text !~ 'eyJhbGci', 'tokens are taken out') from counterfoil.fact_failures as x where x.event_id = 's1';
select ok(length(x.last_error ->> 'message') <= 500, 'what is long is cut') from counterfoil.fact_failures as x where x.event_id = 's1';
select ok(not x.last_error ? 'payload', 'what is unknown is dropped') from counterfoil.fact_failures as x where x.event_id = 's1';

-- Without the org, and refused.
select pg_temp.make_due('s');
select pg_temp.claim('d1', 's');
select is(pg_temp.grid($$ select s.event_id, s.outcome from counterfoil.settle_delivery_failure(array['s1'], 'd1', '{"message": "m"}') as s $$),
    '[["s1", "retrying"]]', 'the facts alone say which');
select is(pg_temp.grid($$ select s.event_id, s.outcome from counterfoil.settle_delivery_failure(array['nothing'], 'd1', '{"message": "m"}') as s $$),
    '[["nothing", "not_owned"]]', 'or that nobody holds them');
select pg_temp.raises(pg_temp.settle('s', '{s1}', '{"message": "m", "eventId": "x"}'), 'RL001', 'p_error.eventId', 'nobody else is to blame');
select pg_temp.fact('s', 'sq', 'runner.logs', '{"searchOnly": true}');
select pg_temp.raises(pg_temp.settle('s', '{s1,sq}'), 'RL001', 'p_event_ids', 'two lanes do not fail as one');
select pg_temp.raises(pg_temp.settle('s', '{s1}', null), 'RL001', 'p_error');
select pg_temp.raises(pg_temp.settle('s', '{s1}', '[]'), 'RL001', 'p_error');
select pg_temp.raises(pg_temp.settle('s', '{s1}', '{}'), 'RL001', 'p_error.message');
select pg_temp.raises(pg_temp.settle('s', '{s1}', '{"message": "m", "status": "503"}'), 'RL001', 'p_error.status');
select pg_temp.raises(pg_temp.settle('s', '{s1}', '{"message": "m", "retryable": "no"}'), 'RL001', 'p_error.retryable');
select pg_temp.raises(pg_temp.settle('s', '{s1}', '{"message": "m", "code": 7}'), 'RL001', 'p_error.code');

select * from finish();
rollback;
