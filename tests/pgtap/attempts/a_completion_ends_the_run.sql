-- SPEC 5: result, summary, terminal logs, progress events, work counters; the terminal fact and the run's end are one.
begin;
\ir ../setup.psql
\ir setup.psql
select plan(51);

select is(pg_temp.admit(r.id), 'admitted', r.id) from (values ('a'), ('b'), ('c'), ('d')) as r (id);
select is(cardinality(pg_temp.claim(4)), 4, 'claimed');
create temporary table first_answer on commit drop as
select pg_temp.complete('a', '{"result": {"n": 1.50}, "resultSummary": {"s": 1},
    "terminalLogLines": ["  first ", "", "[diagnostic:runtime-timing] {\"ms\": 7}", " \t ", "last\n"],
    "terminalLogContexts": [{"n": 1}, {"n": 2}, null, {"n": 4}, null], "terminalLogIds": ["1", "2", "3", "4", null],
    "terminalProgressEvents": [{"type": "run.progress", "data": 1}], "terminalWorkCounterSegment": {"rows": 3}}') as answer;
select is(
    (select f.answer - 'event_id' from first_answer as f),
    '{"run_status": "completed", "outcome": "completed", "replayed": false}'::jsonb, 'the answer'
);
select is(pg_temp.facts('a'), array['run.created', 'run.started', 'run.completed', 'runner.logs'], 'the terminal fact, and its lines for the journal');
select is(
    pg_temp.last_fact('a'),
    '{"producerAttempt": 1, "result": {"n": 1.5}, "resultSummary": {"s": 1}, "terminalLogLines": ["first", "last"],
      "terminalLogContexts": [{"n": 1}, null], "terminalLogIds": ["1", null], "diagnostics": {"runtime-timing": {"ms": 7}},
      "runtimeTiming": {"ms": 7}, "terminalProgressEvents": [{"type": "run.progress", "data": 1}],
      "terminalWorkCounterSegment": {"rows": 3}}'::jsonb,
    'lines are trimmed, empty and tagged ones go with context and id, the diagnostic is lifted'
);
select is(
    (
        select jsonb_build_array(r.status, r.result, r.result_summary, r.error, r.ended_at is not null, r.terminal_event_id)
        from counterfoil.runs as r
        where r.run_id = 'a'
    ),
    (select jsonb_build_array('completed', '{"n": 1.5}'::jsonb, '{"s": 1}'::jsonb, null, true, f.answer -> 'event_id') from first_answer as f),
    'the run has ended'
);
select is(
    (select array[a.status, (a.lease_expires_at is null)::text] from counterfoil.attempts as a where a.run_id = 'a'),
    array['completed', 'true'], 'so has the attempt'
);

-- Repeats.
select is(
    pg_temp.complete('a', '{"result": {"n": 1.5}, "resultSummary": {"s": 1},
    "terminalLogLines": ["  first ", "", "[diagnostic:runtime-timing] {\"ms\": 7}", " \t ", "last\n"],
    "terminalLogContexts": [{"n": 1}, {"n": 2}, null, {"n": 4}, null], "terminalLogIds": ["1", "2", "3", "4", null],
    "terminalProgressEvents": [{"data": 1, "type": "run.progress"}], "terminalWorkCounterSegment": {"rows": 3}}'),
    (select f.answer || '{"replayed": true}' from first_answer as f), 'a repeat answers as the first did'
);
select is(pg_temp.facts('a'), array['run.created', 'run.started', 'run.completed', 'runner.logs'], 'and writes nothing');
select pg_temp.raises($$ select pg_temp.complete('a', '{"result": 2}') $$, 'RL003', 'attempt_answer', 'another completion is a conflict');
select pg_temp.raises($$ select pg_temp.fail_run('a') $$, 'RL003', 'attempt_answer', 'so is a failure after it');
select pg_temp.raises(
    $$ select counterfoil.complete_attempt('org', 'a', 1, 'forged', '{}') $$, 'RL004', 'attempt_lease_not_current', 'another lease is refused'
);

-- Alignment.
select pg_temp.raises(
    format('select pg_temp.complete(%L, %L)', 'b', b.completion), 'RL001', 'p_completion.' || b.path, b.completion
)
from (
    values
        ('terminalLogContexts', '{"terminalLogLines": ["a", "b"], "terminalLogContexts": [null]}'),
        ('terminalLogContexts', '{"terminalLogContexts": [null]}'),
        ('terminalLogIds', '{"terminalLogLines": ["a"], "terminalLogIds": ["1", "2"]}'),
        ('terminalLogLines', '{"terminalLogLines": "a"}'),
        ('terminalLogLines[1]', '{"terminalLogLines": ["a", 5]}'),
        ('terminalLogContexts[0]', '{"terminalLogLines": ["a"], "terminalLogContexts": ["c"]}'),
        ('terminalLogIds[0]', '{"terminalLogLines": ["a"], "terminalLogIds": [1]}'),
        ('terminalProgressEvents', '{"terminalProgressEvents": {}}'),
        ('terminalProgressEvents[1]', '{"terminalProgressEvents": [{"type": "run.progress"}, {"type": "run.failed"}]}'),
        ('terminalProgressEvents[0]', '{"terminalProgressEvents": [{"type": "Run"}]}'),
        ('terminalProgressEvents[0]', '{"terminalProgressEvents": [5]}'),
        ('terminalWorkCounterSegment', '{"terminalWorkCounterSegment": []}'),
        ('runtimeTiming', '{"runtimeTiming": 5}')
) as b (path, completion);
select is(
    (select r.message from pg_temp.raised(
        $$ select pg_temp.complete('b', '{"terminalLogLines": ["a"], "terminalLogContexts": []}') $$) as r),
    'terminal log contexts must align with terminal log lines', 'in these words'
);
select pg_temp.raises($$ select pg_temp.complete('b', '[]') $$, 'RL001', 'p_completion');
select pg_temp.raises($$ select counterfoil.complete_attempt('org', 'b', 1, 'x', null) $$, 'RL001', 'p_completion');
select pg_temp.raises($$ select counterfoil.complete_attempt('', 'b', 1, 'x', '{}') $$, 'RL001', 'p_org_id');
select pg_temp.raises($$ select counterfoil.complete_attempt('org', null, 1, 'x', '{}') $$, 'RL001', 'p_run_id');
select pg_temp.raises($$ select counterfoil.complete_attempt('org', 'b', 0, 'x', '{}') $$, 'RL001', 'p_attempt');
select pg_temp.raises($$ select counterfoil.complete_attempt('org', 'b', 1, null, '{}') $$, 'RL001', 'p_lease_id');
select pg_temp.raises($$ select counterfoil.complete_attempt('org', 'x', 1, 'x', '{}') $$, 'RL002', 'run_not_found');
select pg_temp.raises($$ select counterfoil.complete_attempt('org-2', 'b', 1, 'x', '{}') $$, 'RL002', 'run_not_found');
select pg_temp.raises($$ select counterfoil.complete_attempt('org', 'b', 2, 'x', '{}') $$, 'RL002', 'attempt_not_found');

-- The journal knows lines by their ids: one without, or with another's, could never be indexed.
select pg_temp.raises(
    format($$ select pg_temp.complete('b', '{"terminalLogLines": ["1", "2", "3"], "terminalLogIds": %s}') $$, i.ids),
    'RL001', 'p_completion.terminalLogIds[2]', i.what
)
from (
    values ('["a", null, "a"]', 'an id twice'), ('["a", null, ""]', 'an empty id'), (format('["a", null, "%s"]', repeat('x', 201)), 'a long one')
) as i (ids, what);

-- Sizes, and the tail of the log.
update counterfoil.settings as s set value = '1024' where s.name = 'result_max_bytes';
select pg_temp.raises(
    $$ select pg_temp.complete('b', jsonb_build_object('result', repeat('x', 1023))) $$, 'RL008', 'p_completion.result', 'too large a result'
);
update counterfoil.settings as s set value = '2048' where s.name = 'fact_max_bytes';
select pg_temp.raises(
    $$ select pg_temp.complete('b', jsonb_build_object('terminalLogLines', jsonb_build_array(repeat('x', 2048)))) $$,
    'RL008', 'p_completion', 'too large a fact'
);
select is(pg_temp.status('b'), 'running', 'what was refused ended nothing');
update counterfoil.settings as s set value = '3' where s.name = 'log_tail_limit';
select ok(
    pg_temp.complete('b', jsonb_build_object(
        'result', repeat('x', 1022), 'terminalLogLines', '["1", "2", "", "3", "4", " "]'::jsonb,
        'terminalLogIds', '["a", "b", "c", "d", "e", "f"]'::jsonb
    )) ->> 'outcome' = 'completed', 'a result of exactly the limit fits'
);
select is(
    pg_temp.last_fact('b') - 'result',
    '{"producerAttempt": 1, "terminalLogLines": ["2", "3", "4"], "terminalLogContexts": [null, null, null],
      "terminalLogIds": ["b", "d", "e"]}'::jsonb,
    'the last lines stay, aligned'
);

-- Tagged lines: only well-formed ones are lifted; a field that was sent wins.
select ok(
    pg_temp.complete('c', '{"terminalWorkCounterSegment": {"sent": 1}, "terminalLogLines": ["[diagnostic:work-counters] {\"tagged\": 1}",
      "[diagnostic:odd] {not json}", "see [diagnostic:x] {}", "[diagnostic:mem] {\"peak\": 5}"]}') ->> 'outcome' = 'completed',
    'a completion of an older runner'
);
select is(
    pg_temp.last_fact('c') - 'terminalLogContexts',
    '{"producerAttempt": 1, "terminalWorkCounterSegment": {"sent": 1}, "terminalLogLines": ["[diagnostic:odd] {not json}", "see [diagnostic:x] {}"],
      "diagnostics": {"work-counters": {"tagged": 1}, "mem": {"peak": 5}}}'::jsonb,
    'what is no diagnostic stays a line'
);

select is(pg_temp.complete('d') ->> 'outcome', 'completed', 'nothing to say is fine');
select is(
    pg_temp.last_fact('d'), '{"producerAttempt": 1, "terminalLogLines": [], "terminalLogContexts": []}'::jsonb, 'the least fact'
);
select is(
    (select array[l.priority, l.terminal_seq, l.tail_seq]::bigint[] from counterfoil.lanes as l where l.run_id = 'd'), array[0, 3, 3]::bigint[],
    'the lane knows of the terminal'
);

select * from finish();
rollback;
