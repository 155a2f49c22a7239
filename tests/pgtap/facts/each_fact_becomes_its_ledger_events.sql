-- The projection of every event type.
begin;
\ir ../setup.psql
\ir setup.psql
select plan(25);

select pg_temp.started_run('r1');

create function pg_temp.projected(p_event text)
returns jsonb language sql as $function$
    select coalesce(jsonb_agg(p.event order by p.item), '[]') from counterfoil.project_fact('acme', 'r1', p_event) as p
$function$;
-- type and data only.
create function pg_temp.short(p_event text)
returns jsonb language sql as $function$
    select coalesce(jsonb_agg(jsonb_build_array(p.event -> 'type', p.event -> 'data') order by p.item), '[]')
    from counterfoil.project_fact('acme', 'r1', p_event) as p
$function$;

update counterfoil.outbox set created_at = '2026-01-02 03:04:05.678901+00' where event_id = 'r1-created';
select is(
    pg_temp.projected('r1-created'),
    '[{"type": "run.created", "runId": "r1", "eventId": "r1-created", "seq": 1, "item": 0,
       "occurredAt": "2026-01-02T03:04:05.678901Z", "data": {"playId": "play-1", "playName": "audit", "rootRunId": "r1"}}]',
    'run.created'
);
select is(pg_temp.short('r1-started'), '[["run.started", {"attempt": 1}]]', 'run.started');

select pg_temp.fact('r1', 'p', 'run.progress', '{"done": 3, "searchOnly": false, "deferredProjection": false}');
select is(pg_temp.short('p'), '[["run.progress", {"done": 3}]]', 'run.progress, without its flags');
select pg_temp.fact('r1', 'w', 'run.waiting', '{"kind": "public", "reason": "approval", "event": "approved", "wakeAt": "2026-01-01T00:00:00Z"}');
select is(
    pg_temp.short('w'), '[["run.waiting", {"kind": "public", "reason": "approval", "event": "approved", "wakeAt": "2026-01-01T00:00:00Z"}]]',
    'run.waiting'
);
select pg_temp.fact('r1', 'parked', 'run.waiting', '{"kind": "detached_runner"}');
select is(pg_temp.projected('parked'), '[]', 'a park behind a detached runner is transport only');
select pg_temp.fact('r1', 'res', 'run.resumed', '{"event": "approved"}');
select is(pg_temp.short('res'), '[["run.resumed", {"event": "approved"}]]', 'run.resumed');

select pg_temp.fact('r1', 'batch', 'run.events', '{"events": [
    {"type": "play.step", "name": "one", "occurredAt": "2026-03-01T12:00:00+02:00"},
    {"type": "log.appended", "lines": ["a"], "occurredAt": 1767225600123},
    {"type": "play.step", "name": "two"}]}');
select is(
    pg_temp.short('batch'), '[["play.step", {"name": "one"}], ["log.appended", {"lines": ["a"]}], ["play.step", {"name": "two"}]]',
    'run.events: its items'
);
select is(
    (select jsonb_agg(e -> 'occurredAt') from jsonb_array_elements(pg_temp.projected('batch')) as e),
    jsonb_build_array('2026-03-01T10:00:00.000000Z', '2026-01-01T00:00:00.123000Z',
        (select counterfoil.iso_time(o.created_at) from counterfoil.outbox as o where o.event_id = 'batch')),
    'each when its producer says it happened, or when it was written'
);
select is(
    (select jsonb_agg(jsonb_build_array(e -> 'item', e -> 'seq', e -> 'eventId')) from jsonb_array_elements(pg_temp.projected('batch')) as e),
    '[[0, 7, "batch"], [1, 7, "batch"], [2, 7, "batch"]]', 'numbered within the fact'
);
select is(
    (select array_agg(p.item) from counterfoil.project_fact('acme', 'r1', 'batch') as p), array[0, 1, 2], 'as the rows are'
);

select pg_temp.fact('r1', 'logs', 'runner.logs', '{"lines": ["x"]}');
select is(pg_temp.projected('logs'), '[]', 'runner.logs is durable already');
select pg_temp.fact('r1', 'receipt', 'step.receipt', '{"key": "k"}');
select is(pg_temp.projected('receipt'), '[]', 'and so is step.receipt');
select pg_temp.fact('r1', 'quiet', 'run.progress', '{"searchOnly": true}');
select is(pg_temp.projected('quiet'), '[]', 'what is search-only stays out of the ledger');

select pg_temp.fact('r1', 'raw', 'run.events', '{"deferredProjection": true, "lines": ["x"]}');
select pg_temp.raises($$ select counterfoil.project_fact('acme', 'r1', 'raw') $$, 'RL005', 'projection_deferred', 'a deferred fact has none yet');
select pg_temp.raises($$ select counterfoil.project_fact('acme', 'r1', 'no') $$, 'RL002', 'fact_not_found');
select pg_temp.raises($$ select counterfoil.project_fact('acme', 'r2', 'p') $$, 'RL002', 'fact_not_found', 'a fact of another run');
select pg_temp.raises($$ select counterfoil.project_fact('acme', 'r1', null) $$, 'RL001', 'p_event_id');

select pg_temp.end_run('r1', '{
    "attempt": 2, "producerAttempt": 2, "result": {"ok": true}, "resultSummary": {"rows": 3}, "terminalWorkCounterSegment": {"n": 1},
    "terminalLogLines": ["l1", "l2"], "terminalLogContexts": [null, {"step": "a"}], "terminalLogIds": ["i1", null],
    "terminalProgressEvents": [{"type": "play.step", "name": "last"}]}');
select is(pg_temp.short('r1-end'), '[
    ["play.step", {"name": "last"}],
    ["log.appended", {"channel": "log", "producerAttempt": 2, "lines": ["l1", "l2"], "lineContexts": [null, {"step": "a"}], "lineIds": ["i1", null]}],
    ["run.completed", {"attempt": 2, "result": {"ok": true}, "resultSummary": {"rows": 3}, "workCounterSegment": {"n": 1}}]]',
    'a terminal: its progress events, its log, then itself');

create function pg_temp.terminal(p_type text, p_payload jsonb)
returns jsonb language sql as $function$
    select jsonb_agg(jsonb_build_array(e -> 'type', e -> 'item', e -> 'data'))
    from jsonb_array_elements(counterfoil.project_events(p_type, 'e', 'r', 9, clock_timestamp(), p_payload)) as e
$function$;
select is(
    pg_temp.terminal('run.failed', '{"producerAttempt": 1, "error": {"message": "no"}, "terminalLogLines": []}'),
    '[["run.failed", 0, {"attempt": 1, "error": {"message": "no"}}]]', 'run.failed without a log'
);
select is(
    pg_temp.terminal('run.cancelled', '{"reason": "stop", "terminalLogLines": ["x"], "terminalLogIds": null}'),
    '[["log.appended", 0, {"channel": "log", "lines": ["x"], "lineContexts": []}], ["run.cancelled", 1, {"reason": "stop"}]]',
    'run.cancelled with a log and nothing else'
);

-- Times that producers send.
select is(counterfoil.event_time('"2024-02-29T23:59:59.123456Z"'), '2024-02-29 23:59:59.123456+00'::timestamptz, 'a leap day');
select is(counterfoil.event_time('0'), '1970-01-01 00:00:00+00'::timestamptz, 'milliseconds');
select is(counterfoil.event_time('"2026-01-01T00:00:00-15:59"'), '2026-01-01 15:59:00+00'::timestamptz, 'the widest offset');
select is(
    (select array_agg(counterfoil.event_time(v::jsonb)) from unnest(array[
        'null', 'true', '"x"', '"2026-01-01"', '"2026-01-01T00:00:00"', '"2026-13-01T00:00:00Z"', '"2026-01-32T00:00:00Z"',
        '"2026-01-01T24:00:00Z"', '"2026-01-01T00:60:00Z"', '"2026-01-01T00:00:60Z"', '"2026-01-01T00:00:00+16:00"', '"0000-01-01T00:00:00Z"',
        '253402300800000', '-62135596800001', '1e400',
        -- In UTC no year of four digits: a cursor could not name it.
        '"0001-01-01T00:00:00+14:00"', '"9999-12-31T23:59:59-14:00"', '"9999-12-31T23:59:59.9999999Z"'
    ]) as v),
    array_fill(null::timestamptz, array[18]), 'what names no time'
);
select is(counterfoil.event_time(null), null, 'nothing');

select * from finish();
rollback;
