-- Two orgs whose runs and facts have the same ids: whatever is done with the one's, the other's stay as they are, and the answers
-- are those of the one alone.
begin;
\ir ../setup.psql
\ir setup.psql
select plan(28);

-- The other org's run, further on than ours: the same owner holds its frozen receipt, after three failures, and its ledger has begun.
select pg_temp.quiet_run('r', 'beta');
select pg_temp.fact('r', 'x1', p_org => 'beta');
select counterfoil.append_fact('beta', 'r', 'a1', 'run.progress', '{"searchOnly": true}');
select pg_temp.fact('r', e, p_org => 'beta') from unnest(array['a2', 'a3', 'a4', 'a5']) as e;
select pg_temp.claim('d1', 'r', 1, p_org => 'beta');
select counterfoil.acknowledge_delivery('beta', 'r', array['x1'], 'd1', 0);
create function pg_temp.fail_beta() returns void language plpgsql volatile parallel unsafe as $function$
begin
    perform pg_temp.claim('d1', 'r', p_org => 'beta');
    perform counterfoil.settle_delivery_failure('beta', 'r', array['a2', 'a3', 'a4', 'a5'], 'd1', '{"message": "503"}');
    update counterfoil.fact_failures as x set next_attempt_at = clock_timestamp() where x.org_id = 'beta';
    update counterfoil.lanes as l set due_at = clock_timestamp() where l.org_id = 'beta';
end
$function$;
select pg_temp.fail_beta() from generate_series(1, 3);
select pg_temp.claim('d1', 'r', p_org => 'beta');
create temporary table beta_key as
select r.idempotency_key as key from counterfoil.renew_delivery('beta', 'r', array['a2', 'a3', 'a4', 'a5'], 'd1', 300, true) as r;
select counterfoil.append_run_events('beta', 'r', b.key, 'd1', (
    select jsonb_agg(p.event order by g.ordinality)
    from unnest(array['a2', 'a3', 'a4', 'a5']) with ordinality as g (event_id, ordinality)
    cross join lateral counterfoil.project_fact('beta', 'r', g.event_id) as p
)) from beta_key as b;

create function pg_temp.beta() returns jsonb language sql volatile parallel unsafe as $function$
    select jsonb_build_array(
        (select jsonb_agg(to_jsonb(t) order by t.seq) from counterfoil.outbox as t where t.org_id = 'beta'),
        (select jsonb_agg(to_jsonb(t) order by t.lane) from counterfoil.lanes as t where t.org_id = 'beta'),
        (select jsonb_agg(to_jsonb(t) order by t.seq) from counterfoil.fact_failures as t where t.org_id = 'beta'),
        (select jsonb_agg(to_jsonb(t) order by t.first_seq) from counterfoil.deliveries as t where t.org_id = 'beta'),
        (select jsonb_agg(to_jsonb(t)) from counterfoil.ledgers as t where t.org_id = 'beta'),
        (select jsonb_agg(to_jsonb(t) order by t.position) from counterfoil.ledger_events as t where t.org_id = 'beta'),
        (select jsonb_agg(to_jsonb(t) order by t.chunk) from counterfoil.ledger_appends as t where t.org_id = 'beta')
    )
$function$;
create temporary table before as select pg_temp.beta() as beta;

-- Ours, from its facts to its ledger.
select pg_temp.quiet_run('r');
select is(pg_temp.fact('r', 'a' || i), (i + 2)::bigint, 'its positions are its own') from generate_series(1, 4) as i;
select is(pg_temp.claim('d1', 'r', p_org => 'acme'), array['a1', 'a2', 'a3', 'a4'], 'claimed');
select is(
    pg_temp.grid($$ select s.event_id, s.outcome from counterfoil.settle_delivery_failure('acme', 'r', array['a1', 'a2', 'a3', 'a4'], 'd1', '{"message": "503"}') as s $$),
    '[["a1", "retrying"], ["a2", "retrying"], ["a3", "retrying"], ["a4", "retrying"]]', 'settled'
);
select is((select array_agg(distinct x.attempts) from counterfoil.fact_failures as x where x.org_id = 'acme'), array[1], 'each charged once');
select is(pg_temp.beta(), b.beta, 'and nothing else') from before as b;
select pg_temp.make_due('r');
select pg_temp.claim('d1', 'r', p_org => 'acme');
select is(
    pg_temp.grid($$ select r.event_id from counterfoil.release_delivery('acme', 'r', array['a1', 'a2', 'a3', 'a4'], 'd1', true) as r $$),
    '[["a1"], ["a2"], ["a3"], ["a4"]]', 'released'
);
select is(pg_temp.beta(), b.beta, 'by itself') from before as b;
select pg_temp.make_due('r');
select pg_temp.claim('d1', 'r', p_org => 'acme');
select is(pg_temp.freeze('r', array['a1', 'a2', 'a3', 'a4']), pg_temp.key('r', 'a1', 'a2', 'a3', 'a4'), 'frozen under its own key');
select is(pg_temp.beta(), b.beta, 'as the other stays under its own') from before as b;
select is(
    pg_temp.grid($$ select a.* from counterfoil.assert_delivery('acme', 'r', 'd1', pg_temp.key('r', 'a1', 'a2', 'a3', 'a4'), pg_temp.events('r', 'a1', 'a2', 'a3', 'a4')) as a $$),
    '[[3, 6, 0, 4]]', 'proven'
);
select pg_temp.raises(
    format('select counterfoil.assert_delivery(%L, %L, %L, %L)', 'acme', 'r', 'd1', b.key), 'RL004', 'receipt_boundary_mismatch',
    'but not under the other''s key'
) from beta_key as b;
select counterfoil.settle_delivery_failure('acme', 'r', array['a1', 'a2', 'a3', 'a4'], 'd1', '{"message": "no", "retryable": false, "eventId": "a2"}');
select is(pg_temp.grid($$ select b.org_id, b.event_id, b.waiting_facts from counterfoil.list_blocked() as b $$), '[["acme", "a2", 2]]', 'blocked');
select is(counterfoil.delivery_status('beta', 'r', 'a2'), 'pending', 'the other''s is not');
select is(
    pg_temp.grid($$ select y.event_id from counterfoil.replay_blocked('acme', 'r', 'a2', 'mended') as y $$), '[["a1"], ["a2"], ["a3"], ["a4"]]', 'replayed'
);
select is(pg_temp.beta(), b.beta, 'alone') from before as b;
select pg_temp.claim('d1', 'r', p_org => 'acme');
select counterfoil.settle_delivery_failure('acme', 'r', array['a1', 'a2', 'a3', 'a4'], 'd1', '{"message": "no", "retryable": false, "eventId": "a2"}');
select lives_ok($$ select counterfoil.skip_blocked('acme', 'r', 'a2', 'nonsense') $$, 'skipped');
select is(pg_temp.beta(), b.beta, 'without a trace in the other') from before as b;
select pg_temp.claim('d1', 'r', p_org => 'acme');
select is(
    (select a::text from counterfoil.append_run_events('acme', 'r', pg_temp.key('r', 'a1'), 'd1', pg_temp.events('r', 'a1')) as a),
    '(appended,1,1,t)', 'its ledger begins by itself'
);
select is(
    pg_temp.grid($$ select a.kind, a.event_id from counterfoil.acknowledge_delivery('acme', 'r', array['a1'], 'd1', 64) as a $$),
    '[["acknowledged", "a1"], ["claimed", "a3"], ["claimed", "a4"]]', 'acknowledged'
);
select is(
    (select a::text from counterfoil.append_run_events('acme', 'r', pg_temp.key('r', 'a3', 'a4'), 'd1', pg_temp.events('r', 'a3', 'a4')) as a),
    '(appended,2,3,t)', 'and goes on'
);
select counterfoil.acknowledge_delivery('acme', 'r', array['a3', 'a4'], 'd1');
select is((select array_agg(e.position) from counterfoil.read_run_events('acme', 'r') as e), array[1, 2, 3]::bigint [], 'it reads its own events');
select is(pg_temp.beta(), b.beta, 'the other is as it was') from before as b;
select is(counterfoil.delivery_status('acme', 'r', e), case e when 'a2' then 'blocked' else 'delivered' end, e) from unnest(array['a1', 'a2', 'a4']) as e;

select * from finish();
rollback;
