-- The same id with the same content is the same fact; with other content it is refused.
begin;
\ir ../setup.psql
\ir setup.psql
select plan(21);

select pg_temp.started_run('r1');
select pg_temp.started_run('r2');
select pg_temp.started_run('r1', 'other');

select results_eq(
    $$ select a.recorded, a.seq from counterfoil.append_fact('acme', 'r1', 'e1', 'run.progress', '{"done": 1}') as a $$,
    $$ values (true, 3::bigint) $$, 'a new fact gets the next place'
);
select results_eq(
    $$ select a.recorded, a.seq from counterfoil.append_fact('acme', 'r1', 'e2', 'run.progress', '{"done": 2}') as a $$,
    $$ values (true, 4::bigint) $$, 'and the one after it the next'
);
select results_eq(
    $$ select a.recorded, a.seq from counterfoil.append_fact('acme', 'r1', 'e1', 'run.progress', '{"done": 1.0}') as a $$,
    $$ values (false, 3::bigint) $$, 'an exact repeat, however its numbers are spelt, is known'
);
select is((select max(o.seq) from counterfoil.outbox as o where o.org_id = 'acme' and o.run_id = 'r1'), 4::bigint, 'and takes no place');
select pg_temp.raises(
    $$ select counterfoil.append_fact('acme', 'r1', 'e1', 'run.progress', '{"done": 3}') $$, 'RL003', 'p_payload', 'another payload'
);
select pg_temp.raises(
    $$ select counterfoil.append_fact('acme', 'r1', 'e1', 'run.resumed', '{"done": 1}') $$, 'RL003', 'p_event_type', 'another type'
);
select pg_temp.raises(
    $$ select counterfoil.append_fact('acme', 'r2', 'e1', 'run.progress', '{"done": 1}') $$, 'RL003', 'p_run_id', 'another run of the org'
);
select results_eq(
    $$ select a.recorded from counterfoil.append_fact('other', 'r1', 'e1', 'run.progress', '{"done": 9}') as a $$,
    $$ values (true) $$, 'an id means nothing in another org'
);
select results_eq(
    $$ select a.recorded, a.seq from counterfoil.append_fact('acme', 'r1', 'r1-started', 'run.started', '{"attempt": 1}') as a $$,
    $$ values (false, 2::bigint) $$, 'a repeat of what the run wrote itself is known too'
);

select is(
    pg_temp.grid($$ select a.event_id, a.recorded, a.seq from counterfoil.append_facts('acme', 'r1', '[
        {"eventId": "e3", "eventType": "run.progress", "payload": {"done": 3}},
        {"eventId": "e1", "eventType": "run.progress", "payload": {"done": 1}},
        {"eventId": "e4", "eventType": "runner.logs", "payload": {"searchOnly": true}},
        {"eventId": "e3", "eventType": "run.progress", "payload": {"done": 3}}]') as a $$),
    '[["e3", true, 5], ["e1", false, 3], ["e4", true, 6], ["e3", false, 5]]',
    'many facts are answered one by one, in order'
);
select is(
    pg_temp.grid($$ select a.recorded, a.seq from counterfoil.append_facts('acme', 'r1', '[
        {"eventId": "e3", "eventType": "run.progress", "payload": {"done": 3}},
        {"eventId": "e4", "eventType": "runner.logs", "payload": {"searchOnly": true}}]') as a $$),
    '[[false, 5], [false, 6]]', 'a batch may be repeated'
);
select is(pg_temp.grid($$ select * from counterfoil.append_facts('acme', 'r1', '[]') $$), '[]', 'an empty batch is nothing');

select pg_temp.raises($$ select counterfoil.append_facts('acme', 'r1', '[
    {"eventId": "e5", "eventType": "run.progress", "payload": {}},
    {"eventId": "e1", "eventType": "run.progress", "payload": {"done": 7}}]') $$,
    'RL003', 'p_facts[1].payload', 'one bad fact is named');
select pg_temp.raises($$ select counterfoil.append_facts('acme', 'r1', '[
    {"eventId": "e5", "eventType": "run.progress", "payload": {}},
    {"eventId": "e5", "eventType": "run.progress", "payload": {"n": 1}}]') $$,
    'RL003', 'p_facts[1].payload', 'also when both are new');
select pg_temp.raises($$ select counterfoil.append_facts('acme', 'r1', '[
    {"eventId": "e5", "eventType": "run.progress", "payload": {}},
    {"eventId": "e5", "eventType": "run.resumed", "payload": {}}]') $$,
    'RL003', 'p_facts[1].eventType', 'or only the types differ');
select pg_temp.raises($$ select counterfoil.append_facts('acme', 'r2', '[
    {"eventId": "e1", "eventType": "run.progress", "payload": {"done": 1}}]') $$,
    'RL003', 'p_facts[0].runId', 'or it is another run''s');
select is((select count(*) from counterfoil.outbox as o where o.event_id = 'e5'), 0::bigint, 'nothing of a refused batch is kept');

-- What materialisation or retention rewrites is still known.
update counterfoil.outbox set payload_digest = counterfoil.canonical_digest(payload), payload = '{}' where event_id = 'e2';
select results_eq(
    $$ select a.recorded from counterfoil.append_fact('acme', 'r1', 'e2', 'run.progress', '{"done": 2.0}') as a $$,
    $$ values (false) $$, 'a repeat of a fact whose payload was rewritten'
);
select pg_temp.raises(
    $$ select counterfoil.append_fact('acme', 'r1', 'e2', 'run.progress', '{}') $$, 'RL003', 'p_payload', 'the rewritten payload is not it'
);

select is(
    pg_temp.grid($$ select l.lane, l.head_seq, l.tail_seq, l.priority from counterfoil.lanes as l
        where l.org_id = 'acme' and l.run_id = 'r1' order by 1 $$),
    '[["lifecycle", 1, 5, 0], ["search", 6, 6, 3]]', 'each lane knows its first and last pending fact'
);
select is(
    (select array_agg(o.seq order by o.seq) from counterfoil.outbox as o where o.org_id = 'acme' and o.run_id = 'r1'),
    array[1, 2, 3, 4, 5, 6]::bigint[], 'places have no gap'
);

select * from finish();
rollback;
