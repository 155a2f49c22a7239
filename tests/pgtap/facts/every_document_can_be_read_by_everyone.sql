-- What one parser gives up on would stop every claim that it is part of: it is refused where it comes in.
begin;
\ir ../setup.psql
\ir ../attempts/setup.psql
select plan(19);

create function pg_temp.nest(p_levels integer, p_item text default '1.0')
returns jsonb language sql immutable parallel safe as $function$
  select (repeat('[{"a":', p_levels / 2) || p_item || repeat('}]', p_levels / 2))::jsonb
$function$;

select is(pg_temp.admit('a', jsonb_build_object('input', pg_temp.nest(198))), 'admitted', 'a launch with 199 levels');
select is(pg_temp.claim(), array['a'], 'is claimed');
create function pg_temp.proof_of_a()
returns text language sql stable parallel unsafe as $function$ select pg_temp.proof('a') $function$;

select pg_temp.raises(
    format('select pg_temp.admit(%L, %L)', 'b', jsonb_build_object('input', pg_temp.nest(200))),
    'RL001', 'p_launch', 'a launch with 201 is refused'
);
select pg_temp.raises(
    format('select * from counterfoil.admit_launches(%L)', jsonb_build_array(
        pg_temp.launch('{"runId": "c"}'), pg_temp.launch(jsonb_build_object('runId', 'b', 'x', pg_temp.nest(5000)))
    )),
    'RL001', 'p_launches[1]', 'and named'
);
select pg_temp.raises(
    format('select * from counterfoil.append_fact(%L, %L, %L, %L, %L)', 'org', 'a', 'e', 'run.progress', jsonb_build_object('x', pg_temp.nest(200))),
    'RL001', 'p_payload', 'so is a fact'
);
select pg_temp.raises(
    format('select * from counterfoil.append_facts(%L, %L, %L)', 'org', 'a', jsonb_build_array(jsonb_build_object(
        'eventId', 'e', 'eventType', 'run.events', 'payload',
        jsonb_build_object('events', jsonb_build_array(jsonb_build_object('type', 'a.b', 'x', pg_temp.nest(5000))))
    ))),
    'RL001', 'p_facts[0].payload', 'one of many'
);
select pg_temp.raises(
    format('select * from counterfoil.resume_run(%L, %L, null, %L, %L)', 'org', 'a', pg_temp.nest(202), 's'),
    'RL001', 'p_payload', 'a resume'
);
select pg_temp.raises(
    format('select * from counterfoil.complete_attempt(%s, %L)', pg_temp.proof_of_a(), jsonb_build_object('result', pg_temp.nest(5000))),
    'RL001', 'p_completion', 'a result'
);
select pg_temp.raises(
    format('select * from counterfoil.fail_attempt(%s, %L)', pg_temp.proof_of_a(), jsonb_build_object(
        'error', jsonb_build_object('message', 'm', 'details', pg_temp.nest(5000)))),
    'RL001', 'p_failure', 'an error'
);
select pg_temp.raises(
    format('select * from counterfoil.direct_complete_runner_terminal(%s, %L)', pg_temp.proof_of_a(), jsonb_build_object(
        'status', 'completed', 'result', pg_temp.nest(5000))),
    'RL001', 'p_terminal', 'a runner''s terminal'
);
select is(
    (select a.recorded from counterfoil.append_fact('org', 'a', 'e', 'run.progress', jsonb_build_object('x', pg_temp.nest(198))) as a),
    true, 'a fact with 199 levels is recorded'
);
select is(pg_temp.complete('a', jsonb_build_object('result', pg_temp.nest(198))) ->> 'outcome', 'completed', 'and such a result');

-- Python reads whole numbers of up to 4300 digits.
select is(
    pg_temp.admit('d', '{"input": [1e999, 1e-900]}'::jsonb || jsonb_build_object('x', repeat('9', 5000))), 'admitted',
    'large numbers are taken, and digits in a string'
);
select pg_temp.raises(
    $$ select pg_temp.admit('e', '{"input": [{"a": 1e5000}]}') $$, 'RL001', 'p_launch', 'a number with 5001 digits is not'
);
select pg_temp.raises(
    $$ select * from counterfoil.append_fact('org', 'a', 'f', 'runner.logs', '{"x": -1e5000}') $$, 'RL001', 'p_payload', 'nor here'
);
select pg_temp.raises(
    $$ select * from counterfoil.resume_run('org', 'a', null, '1e1000', 's') $$, 'RL001', 'p_payload', 'nor alone'
);

-- Digests are taken of what nobody has looked at yet.
select is(
    counterfoil.canonical_digest(pg_temp.nest(5000, '1.50')), counterfoil.canonical_digest(pg_temp.nest(5000, '1.5')),
    'equal numbers make equal digests at any depth'
);
select is(
    counterfoil.canonical_json('{"a\"1.10": 1.10, "b": [0.0, -1.500, 100.00, 0.001, "3.00\\"], " 2.00 ": {"d\\": 1.0}}'::jsonb)::text,
    '{"b": [0, -1.5, 100, 0.001, "3.00\\"], " 2.00 ": {"d\\": 1}, "a\"1.10": 1.1}', 'what looks like a number in a string stays'
);

-- A list of lists is no list of facts.
select pg_temp.raises(
    $$ select * from counterfoil.release_delivery('org', 'a', '{{x, y}, {z, u}}', 'd') $$, 'RL001', 'p_event_ids', 'one dimension'
);

select * from finish();
rollback;
