-- The dead letter queue: list, replay, skip, each audited, none of them losing or reordering a fact.
begin;
\ir ../setup.psql
\ir setup.psql
select plan(67);

create function pg_temp.block(p_run text, p_events text[], p_only text default null)
returns void language sql as $function$
    select from counterfoil.settle_delivery_failure('acme', p_run, p_events, 'd1',
        jsonb_strip_nulls(jsonb_build_object('message', 'refused', 'status', 422, 'retryable', false, 'eventId', p_only)))
$function$;
create function pg_temp.blocked(p_org text default null, p_after jsonb default null, p_limit integer default 100)
returns jsonb language sql as $function$
    select coalesce(jsonb_agg(b.event_id), '[]') from counterfoil.list_blocked(p_org, p_after, p_limit) as b
$function$;

select is(pg_temp.blocked(), '[]', 'nothing is blocked');

-- A frozen delivery that its receiver refused for good.
select pg_temp.quiet_run('r');
select pg_temp.fact('r', 'a' || i) from generate_series(1, 4) as i;
select pg_temp.fact('r', 'aq', 'runner.logs', '{"searchOnly": true}');
select pg_temp.claim('d1', 'r', 3);
select pg_temp.freeze('r', array['a1', 'a2', 'a3']);
create temporary table k as select (pg_temp.lane('r')).receipt_key as key;
select pg_temp.block('r', array['a1', 'a2', 'a3']);
select is(
    pg_temp.grid($$ select b.org_id, b.run_id, b.lane, b.seq, b.event_id, b.event_type, b.attempts, b.last_error ->> 'message', b.blocks_lane, b.waiting_facts
        from counterfoil.list_blocked('acme') as b $$),
    '[["acme", "r", "lifecycle", 3, "a1", "run.progress", 1, "refused", true, 3],
      ["acme", "r", "lifecycle", 4, "a2", "run.progress", 1, "refused", true, 2],
      ["acme", "r", "lifecycle", 5, "a3", "run.progress", 1, "refused", true, 1]]', 'what blocks what'
);
select is(
    pg_temp.grid($$ select r.event_id from counterfoil.replay_blocked('acme', 'r', 'a2', 'receiver mended') as r $$),
    '[["a1"], ["a2"], ["a3"]]', 'one receipt is replayed as one'
);
select is(pg_temp.blocked(), '[]', 'nothing is blocked any more');
select is(pg_temp.claim('d1', 'r', 1), array['a1', 'a2', 'a3'], 'it goes as the same set');
select is((pg_temp.lane('r')).receipt_key, (select key from k), 'under the same key');
select counterfoil.settle_delivery_failure('acme', 'r', array['a1', 'a2', 'a3'], 'd1', '{"message": "503"}');
select is((select max(x.attempts) from counterfoil.fact_failures as x), 1, 'from the start of the policy');
select is(
    pg_temp.grid($$ select a.action, a.target, a.reason, a.details -> 'replayed', a.actor = session_user from counterfoil.operator_audit as a $$),
    '[["replay_blocked", {"runId": "r", "eventId": "a2"}, "receiver mended", ["a1", "a2", "a3"], true]]', 'the audit trail knows'
);
select pg_temp.raises($$ select counterfoil.replay_blocked('acme', 'r', 'a2', 'again') $$, 'RL005', 'fact_not_blocked', 'what is not blocked is not replayed');

-- Skipped in a frozen receipt.
select pg_temp.make_due('r');
select pg_temp.claim('d1', 'r');
select pg_temp.block('r', array['a1', 'a2', 'a3'], 'a2');
select is(pg_temp.claim('d1', 'r'), '{}', 'a blocked fact in a frozen receipt blocks all of it');
select is((select b.blocks_lane from counterfoil.list_blocked() as b), true, 'and says so');
select is(counterfoil.delivery_status('acme', 'r', 'a1'), 'blocked', 'also what comes before it');
select lives_ok($$ select counterfoil.skip_blocked('acme', 'r', 'a2', 'producer sent nonsense') $$, 'skipped');
select is(pg_temp.claim('d1', 'r'), array['a1'], 'what comes before it is delivered');
select is(
    pg_temp.grid($$ select a.kind, a.event_id from counterfoil.acknowledge_delivery('acme', 'r', array['a1'], 'd1', 64) as a $$),
    '[["acknowledged", "a1"], ["claimed", "a3"], ["claimed", "a4"]]', 'then what comes after it'
);
select is(counterfoil.delivery_status('acme', 'r', 'a2'), 'blocked', 'the skipped fact is never delivered');
select is(
    pg_temp.grid($$ select d.first_seq, d.last_seq, d.outcome, d.lease_owner = session_user from counterfoil.deliveries as d
        where d.run_id = 'r' and d.first_seq > 2 order by 1 $$),
    '[[3, 3, "delivered", false], [4, 4, "skipped", true]]', 'the log says what became of each'
);
select is((select count(*) from counterfoil.fact_failures as x where x.event_id in ('a1', 'a2')), 0::bigint, 'nothing is left of their failures');
select is((select count(*) from counterfoil.outbox as o where o.event_id = 'a2'), 1::bigint, 'the fact itself is kept');
select pg_temp.raises(
    $$ select counterfoil.acknowledge_delivery('acme', 'r', array['a2'], session_user::text) $$, 'RL004', 'delivery_lease_not_current',
    'nor is it acknowledged to who skipped it'
);
select is(
    pg_temp.grid($$ select a.reason, a.details ->> 'receiptDissolved' from counterfoil.operator_audit as a where a.action = 'skip_blocked' $$),
    '[["producer sent nonsense", "true"]]', 'the audit trail knows'
);
select counterfoil.acknowledge_delivery('acme', 'r', array['a3', 'a4'], 'd1');
select is(counterfoil.delivery_status('acme', 'r', 'a3'), 'delivered', 'what came after it was delivered');
select ok(pg_temp.lane('r') is null, 'all is done');

-- Several bad facts in the middle of a lane.
select pg_temp.quiet_run('m');
select pg_temp.fact('m', 'b' || i) from generate_series(1, 6) as i;
select pg_temp.claim('d1', 'm');
select pg_temp.block('m', array['b3']);
select pg_temp.claim('d1', 'm');
select is((pg_temp.lane('m')).lease_through_seq, 4::bigint, 'the third of six is blocked');
select is((select b.blocks_lane from counterfoil.list_blocked() as b), false, 'it does not block the lane yet');
select is(counterfoil.delivery_status('acme', 'm', 'b3'), 'blocked', 'but is blocked');
select is(counterfoil.delivery_status('acme', 'm', 'b6'), 'blocked', 'with all after it');
select counterfoil.skip_blocked('acme', 'm', 'b3', 'bad');
select is((pg_temp.lane('m')).lease_owner, 'd1', 'a skip behind a delivery on its way leaves that alone');
select is(counterfoil.delivery_status('acme', 'm', 'b3'), 'blocked', 'skipped, not delivered');
select is(counterfoil.delivery_status('acme', 'm', 'b6'), 'pending', 'what comes after it is pending again');
select lives_ok($$ select counterfoil.renew_delivery('acme', 'm', array['b1', 'b2'], 'd1', 30, true) $$, 'and can be frozen');
select is(
    pg_temp.grid($$ select a.kind, a.event_id from counterfoil.acknowledge_delivery('acme', 'm', array['b1', 'b2'], 'd1', 2) as a $$),
    '[["acknowledged", "b1"], ["acknowledged", "b2"], ["claimed", "b4"], ["claimed", "b5"]]', 'the head hops over it'
);
select counterfoil.release_delivery('acme', 'm', array['b4'], 'd1');
select pg_temp.claim('d1', 'm');
select pg_temp.block('m', array['b4', 'b5', 'b6']);
select is(
    pg_temp.grid($$ select b.event_id, b.blocks_lane, b.blocked_at = (pg_temp.lane('m')).blocked_at from counterfoil.list_blocked() as b order by b.seq $$),
    '[["b4", true, true], ["b5", false, true], ["b6", false, true]]', 'the head blocks the lane, since when it says'
);
select counterfoil.skip_blocked('acme', 'm', 'b5', 'bad');
select is((pg_temp.lane('m')).head_seq, 6::bigint, 'a skip behind the head does not move it');
select ok((pg_temp.lane('m')).blocked_at is not null, 'the head is still blocked');
select counterfoil.skip_blocked('acme', 'm', 'b4', 'bad');
select is((pg_temp.lane('m')).head_seq, 8::bigint, 'a skip at the head moves it past all that are skipped');
select is(pg_temp.blocked(), '["b6"]', 'to one that is blocked itself');
select counterfoil.skip_blocked('acme', 'm', 'b6', 'bad');
select ok(pg_temp.lane('m') is null, 'a lane of which all is skipped is done');

-- An end that lies behind a skipped wait.
select pg_temp.quiet_run('w');
select pg_temp.fact('w', 'w1', 'run.waiting', '{"kind": "public"}');
select pg_temp.claim('d1', 'w');
select pg_temp.block('w', array['w1']);
select pg_temp.fact('w', 'w2');
select counterfoil.skip_blocked('acme', 'w', 'w1', 'bad');
select is((pg_temp.lane('w')).priority, 3::smallint, 'a skipped wait is not urgent');

-- What cannot be skipped.
select pg_temp.started_run('s');
select pg_temp.claim('d1', 's');
select pg_temp.block('s', array['s-created']);
select pg_temp.raises($$ select counterfoil.skip_blocked('acme', 's', 's-created', 'no') $$, 'RL005', 'fact_not_skippable', 'a start');
select lives_ok($$ select counterfoil.replay_blocked('acme', 's', 's-created', 'mended') $$, 'is replayed');
select is((pg_temp.lane('s')).priority, 0::smallint, 'as urgently as before');
select pg_temp.quiet_run('t');
select pg_temp.end_run('t');
select pg_temp.claim('d1', 't');
select pg_temp.block('t', array['t-end']);
select pg_temp.raises($$ select counterfoil.skip_blocked('acme', 't', 't-end', 'no') $$, 'RL005', 'fact_not_skippable', 'an end');

-- Refused.
select pg_temp.raises($$ select counterfoil.skip_blocked('acme', 't', 't-end', ' ') $$, 'RL001', 'p_reason');
select pg_temp.raises($$ select counterfoil.skip_blocked('acme', 't', 't-end', repeat('x', 1001)) $$, 'RL001', 'p_reason');
select pg_temp.raises($$ select counterfoil.replay_blocked('acme', 't', 't-end', null) $$, 'RL001', 'p_reason');
select pg_temp.raises($$ select counterfoil.replay_blocked('acme', 't', 'nothing', 'x') $$, 'RL002', 'fact_not_found');
select pg_temp.raises($$ select counterfoil.skip_blocked('acme', 'r', 'a1', 'x') $$, 'RL005', 'fact_not_blocked', 'a fact that is delivered');

-- Pages.
select pg_temp.quiet_run('p' || i) from generate_series(1, 3) as i;
select pg_temp.fact('p' || i, 'p' || i || 'x') from generate_series(1, 3) as i;
select pg_temp.claim('d1', 'p' || i) from generate_series(1, 3) as i;
select pg_temp.block('p' || i, array['p' || i || 'x']) from generate_series(1, 3) as i;
select is(pg_temp.blocked(p_limit => 2), '["t-end", "p1x"]', 'oldest first');
select is(pg_temp.blocked('acme', (select b.cursor from counterfoil.list_blocked(p_limit => 2) as b offset 1), 2), '["p2x", "p3x"]', 'page by page');
select is(pg_temp.blocked('other'), '[]', 'of one org');
select pg_temp.quiet_run('z', 'zeta');
select pg_temp.fact('z', 'z1', p_org => 'zeta');
select pg_temp.claim('d1', 'z', p_org => 'zeta');
select counterfoil.settle_delivery_failure('zeta', 'z', array['z1'], 'd1', '{"message": "refused", "retryable": false}');
select is(pg_temp.blocked('acme'), '["t-end", "p1x", "p2x", "p3x"]', 'and of no other');
select is(pg_temp.blocked(), '["t-end", "p1x", "p2x", "p3x", "z1"]', 'or of all');
select pg_temp.raises($$ select counterfoil.list_blocked('zeta', '{"orgId": "acme", "runId": "r", "seq": 1, "blockedAt": "2026-01-01T00:00:00Z"}') $$,
    'RL001', 'p_after', 'a page of one org is not continued in another');
select pg_temp.raises($$ select counterfoil.list_blocked(p_limit => 0) $$, 'RL001', 'p_limit');
select pg_temp.raises($$ select counterfoil.list_blocked(p_after => '{"orgId": "acme"}') $$, 'RL001', 'p_after');

-- All that an outage blocked, in calls that come to an end though some of it is blocked again at once.
create function pg_temp.replay_all(p_before timestamptz default null, p_code text default null, p_org text default null, p_limit integer default 1000)
returns jsonb language sql as $function$
    select pg_temp.grid(format('select r.org_id, r.event_id from counterfoil.replay_all_blocked(%L, %L, %L, %L, %L) as r',
        'it is back', p_org, p_code, p_before, p_limit))
$function$;
select pg_temp.quiet_run('o' || i) from generate_series(1, 2) as i;
select pg_temp.fact('o1', 'o1' || x), pg_temp.fact('o2', 'o2' || x) from unnest(array['a', 'b']) as x;
select pg_temp.claim('d1', 'o' || i) from generate_series(1, 2) as i;
select pg_temp.freeze('o1', array['o1a', 'o1b']);
select counterfoil.settle_delivery_failure('acme', 'o' || i, array['o' || i || 'a', 'o' || i || 'b'], 'd1',
    '{"message": "away", "code": "http_503", "retryable": false}') from generate_series(1, 2) as i;
select is(pg_temp.replay_all(p_code => 'http_503', p_org => 'zeta'), '[]', 'none of another org');
select is(pg_temp.replay_all(p_code => 'http_404'), '[]', 'none with another error');
select is(pg_temp.replay_all(p_code => 'http_503', p_limit => 1), '[["acme", "o1a"], ["acme", "o1b"]]', 'a limit cuts no receipt');
select is(pg_temp.replay_all(p_before => '-infinity', p_code => 'http_503'), '[]', 'none that was blocked later');
create temporary table cut as select clock_timestamp() as at;
select is(pg_temp.replay_all((select at from cut), 'http_503'), '[["acme", "o2a"], ["acme", "o2b"]]', 'the rest, with that error');
select pg_temp.claim('d1', 'o1');
select pg_temp.block('o1', array['o1a', 'o1b']);
select is(pg_temp.replay_all((select at from cut), 'http_503'), '[]', 'what is blocked again later is left');
select is(pg_temp.replay_all((select at from cut)), '[["acme", "p1x"], ["acme", "p2x"], ["acme", "p3x"], ["acme", "t-end"], ["zeta", "z1"]]', 'of every org, with any error');
select is(pg_temp.blocked(), '["o1a", "o1b"]', 'all else is tried again');
select is(
    (select jsonb_agg(a.target order by a.target) from counterfoil.operator_audit as a where a.reason = 'it is back' and a.org_id = 'zeta'),
    '[{"runId": "z", "eventId": "z1"}]', 'the audit trail knows each'
);
select pg_temp.raises($$ select counterfoil.replay_all_blocked(' ') $$, 'RL001', 'p_reason', 'also where nothing would be replayed');
select pg_temp.raises($$ select counterfoil.replay_all_blocked('x', p_limit => 0) $$, 'RL001', 'p_limit');

select * from finish();
rollback;
