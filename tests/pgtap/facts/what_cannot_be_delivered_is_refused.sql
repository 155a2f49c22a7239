-- Bad facts get a clear error that says where, and change nothing.
begin;
\ir ../setup.psql
\ir setup.psql
select plan(52);

select pg_temp.started_run('r1');
select pg_temp.queued_run('waiting');
select pg_temp.started_run('ended');
select pg_temp.end_run('ended');
select pg_temp.queued_run('cancelled');
update counterfoil.runs set status = 'cancelled', ended_at = clock_timestamp(), terminal_event_id = 'x' where run_id = 'cancelled';

create function pg_temp.refused(
    p_detail text, p_payload text default '{}', p_type text default 'run.progress', p_state text default 'RL001',
    p_event text default 'e', p_run text default 'r1', p_org text default 'acme'
)
returns text language sql as $function$
    select pg_temp.raises(
        format('select counterfoil.append_fact(%L, %L, %L, %L, %L::jsonb)', p_org, p_run, p_event, p_type, p_payload),
        p_state, p_detail
    )
$function$;

select pg_temp.refused('p_org_id', p_org => null);
select pg_temp.refused('p_org_id', p_org => '');
select pg_temp.refused('p_run_id', p_run => repeat('x', 201));
select pg_temp.refused('p_event_id', p_event => null);
select pg_temp.refused('p_event_id', p_event => E'a\nb');
select pg_temp.refused('p_event_id', p_event => repeat('x', 201));
select lives_ok(format($$ select counterfoil.append_fact('acme', 'r1', %L, 'run.progress', '{}') $$, repeat('x', 200)), 'an id of 200');
select pg_temp.refused('p_event_type', p_type => null);
select pg_temp.refused('p_event_type', p_type => 'run.exploded');
select pg_temp.refused('p_payload', null);
select pg_temp.refused('p_payload', '[]');
select pg_temp.refused('p_payload', '"text"');
select pg_temp.refused('p_payload.searchOnly', '{"searchOnly": "yes"}');
select pg_temp.refused('p_payload.deferredProjection', '{"deferredProjection": 1}');
select pg_temp.refused('p_payload.searchOnly', '{"searchOnly": true}', 'run.waiting');
select pg_temp.refused('p_payload.searchOnly', '{"searchOnly": true}', 'run.resumed');

select pg_temp.refused('p_payload.events', '{}', 'run.events');
select pg_temp.refused('p_payload.events', '{"events": []}', 'run.events');
select pg_temp.refused('p_payload.events', '{"events": {"type": "a"}}', 'run.events');
select pg_temp.refused('p_payload.events[1]', '{"events": [{"type": "a"}, 7]}', 'run.events');
select pg_temp.refused('p_payload.events[0].type', '{"events": [{"kind": "a"}]}', 'run.events');
select pg_temp.refused('p_payload.events[0].type', '{"events": [{"type": 7}]}', 'run.events');
select pg_temp.refused('p_payload.events[0].type', '{"events": [{"type": "Step"}]}', 'run.events');
select pg_temp.refused('p_payload.events[0].type', '{"events": [{"type": "1step"}]}', 'run.events');
select pg_temp.refused('p_payload.events[0].type', jsonb_build_object('events', jsonb_build_array(jsonb_build_object('type', repeat('x', 201))))::text, 'run.events');
select pg_temp.refused('p_payload.events[1].type', '{"events": [{"type": "a"}, {"type": "run.completed"}]}', 'run.events');
select pg_temp.refused('p_payload.events[0].type', '{"events": [{"type": "run.created"}]}', 'run.events');
select pg_temp.refused('p_payload.events[0].occurredAt', '{"events": [{"type": "a", "occurredAt": "yesterday"}]}', 'run.events');
select pg_temp.refused('p_payload.events[0].occurredAt', '{"events": [{"type": "a", "occurredAt": "2025-02-29T00:00:00Z"}]}', 'run.events');
select lives_ok($$ select counterfoil.append_fact('acme', 'r1', 'deferred', 'run.events', '{"deferredProjection": true}') $$,
    'what a deferred fact holds is for its materialisation to judge');

-- Size, to the byte.
select lives_ok(
    $$ select counterfoil.append_fact('acme', 'r1', 'big', 'run.progress',
        jsonb_build_object('t', repeat('x', 1048576 - counterfoil.json_bytes('{"t": ""}')))) $$, 'as large as fact_max_bytes'
);
select pg_temp.raises(
    $$ select counterfoil.append_fact('acme', 'r1', 'bigger', 'run.progress',
        jsonb_build_object('t', repeat('x', 1048577 - counterfoil.json_bytes('{"t": ""}')))) $$, 'RL008', 'p_payload', 'one byte more'
);
select pg_temp.raises(
    $$ select counterfoil.append_facts('acme', 'r1', (select jsonb_agg(jsonb_build_object(
        'eventId', 'n' || i, 'eventType', 'run.progress', 'payload', '{}'::jsonb)) from generate_series(1, 1001) as i)) $$,
    'RL008', 'p_facts', 'more facts than fact_batch_max'
);
select lives_ok(
    $$ select counterfoil.append_facts('acme', 'r1', (select jsonb_agg(jsonb_build_object(
        'eventId', 'n' || i, 'eventType', 'run.progress', 'payload', '{}'::jsonb)) from generate_series(1, 1000) as i)) $$,
    'as many as that'
);

select pg_temp.raises($$ select counterfoil.append_facts('', 'r1', '[]') $$, 'RL001', 'p_org_id');
select pg_temp.raises($$ select counterfoil.append_facts('acme', '', '[]') $$, 'RL001', 'p_run_id');
select pg_temp.raises($$ select counterfoil.append_facts('acme', 'r1', null) $$, 'RL001', 'p_facts');
select pg_temp.raises($$ select counterfoil.append_facts('acme', 'r1', '{}') $$, 'RL001', 'p_facts');
select pg_temp.raises($$ select counterfoil.append_facts('acme', 'r1', '[7]') $$, 'RL001', 'p_facts[0]');
select pg_temp.raises($$ select counterfoil.append_facts('acme', 'r1', '[{"eventId": 7, "eventType": "run.progress", "payload": {}}]') $$,
    'RL001', 'p_facts[0]', 'an id is a string');
select pg_temp.raises($$ select counterfoil.append_facts('acme', 'r1', '[{"eventId": "a", "eventType": ["run.progress"], "payload": {}}]') $$,
    'RL001', 'p_facts[0]', 'and so is a type');
select pg_temp.raises(
    $$ select counterfoil.append_facts('acme', 'r1', '[{"eventId": "a", "eventType": "run.progress", "payload": {}}, {"eventType": "run.progress"}]') $$,
    'RL001', 'p_facts[1].eventId'
);
select pg_temp.raises(
    $$ select counterfoil.append_facts('acme', 'r1', '[{"eventId": "a", "eventType": "run.events", "payload": {"events": [{}]}}]') $$,
    'RL001', 'p_facts[0].payload.events[0].type'
);

select pg_temp.refused('run_not_found', p_run => 'nobody', p_state => 'RL002');
select pg_temp.refused('run_not_found', p_org => 'nobody', p_state => 'RL002');
select pg_temp.refused('written_by_the_run', p_type => 'run.created', p_state => 'RL005');
select pg_temp.refused('written_by_the_run', p_type => 'run.completed', p_state => 'RL005');
select pg_temp.refused('run_not_started', p_run => 'waiting', p_state => 'RL005');
select pg_temp.refused('run_not_started', '{"searchOnly": true}', 'runner.logs', 'RL005', p_run => 'cancelled');
select pg_temp.refused('run_ended', p_run => 'ended', p_state => 'RL005');
select is(
    pg_temp.grid($$ select a.recorded from counterfoil.append_facts('acme', 'ended', '[
        {"eventId": "late", "eventType": "runner.logs", "payload": {"lines": ["x"]}},
        {"eventId": "later", "eventType": "step.receipt", "payload": {}}]') as a $$),
    '[[true], [true]]', 'late logs and receipts still come in after the end'
);
select is(
    (select count(*) from counterfoil.outbox as o where o.event_id in ('e', 'a', 'bigger')), 0::bigint, 'what was refused left nothing'
);

select * from finish();
rollback;
