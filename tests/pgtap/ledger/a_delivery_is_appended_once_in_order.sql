begin;
\ir ../setup.psql
\ir setup.psql
select plan(33);

select pg_temp.run_with('r1', array['run.progress', 'run.progress', 'runner.logs', 'run.waiting', 'run.resumed', 'run.completed'], array[
  '{"done": 1}', '{"done": 2}', '{"lines": ["x"]}', '{"reason": "why"}', '{}',
  '{"resultSummary": {"n": 3}, "terminalLogLines": ["bye"], "terminalLogContexts": [null], "attempt": 1}']::jsonb []);

select pg_temp.raises($$ select counterfoil.run_snapshot('acme', 'r1') $$, 'RL002', 'run_not_found', 'before the first delivery the ledger knows nothing');
select is((select count(*) from counterfoil.read_run_events('acme', 'r1')), 0::bigint, 'and has no events');

-- run.created, its reply lost, repeated.
create temporary table claimed on commit drop as select c.* from pg_temp.claim('r1') as c;
select is((select a::text from claimed as c, counterfoil.append_run_created('acme', 'r1', c.key, 'me', c.events) as a), '(appended,1,1,t)', 'run.created opens the ledger');
select is((select a::text from claimed as c, counterfoil.append_run_created('acme', 'r1', c.key, 'me', c.events) as a), '(replayed,1,1,t)', 'a repeat answers the same');
select is(counterfoil.run_snapshot('acme', 'r1') - 'createdAt' - 'updatedAt',
  '{"orgId": "acme", "runId": "r1", "status": "queued", "playId": "pi", "playName": "p", "lastPosition": 1, "startedAt": null, "endedAt": null,
    "progress": null, "waiting": null, "resultSummary": null, "error": null, "launch": null}', 'the snapshot');
select is((counterfoil.run_snapshot('acme', 'r1') ->> 'createdAt')::timestamptz, now(), 'the run was created when its fact says');
select counterfoil.acknowledge_delivery('acme', 'r1', c.event_ids, 'me') from claimed as c;
select is((select a::text from claimed as c, counterfoil.append_run_created('acme', 'r1', c.key, 'me', c.events) as a), '(replayed,1,1,t)', 'also when it comes after the acknowledgement');
select pg_temp.raises(format('select counterfoil.append_run_created(%L, %L, %L, %L, %L)', 'acme', 'r1', c.key, 'me', jsonb_set(c.events, '{0,data}', '{}')),
  'RL003', 'p_events', 'other content under the same key') from claimed as c;

-- run.started with the launch.
delete from claimed;
insert into claimed select c.* from pg_temp.claim('r1') as c;
select is((select a::text from claimed as c, counterfoil.append_run_started('acme', 'r1', c.key, 'me', c.events,
  '{"orgId": "acme", "runId": "r1", "input": {"big": 1}, "playName": "p", "executorToken": "t", "runtimeAuthority": "a",
    "vercelProtectionBypassToken": "v", "preloadedDbSessionUnwrapKey": "k"}') as a), '(appended,2,2,t)', 'run.started');
select is(counterfoil.run_snapshot('acme', 'r1') -> 'launch', '{"orgId": "acme", "runId": "r1", "playName": "p"}', 'readers see the launch without input and credentials');
select is((select l.launch -> 'input' from counterfoil.ledgers as l), '{"big": 1}', 'the input is kept');
select is((select l.launch ?| array['executorToken', 'runtimeAuthority', 'vercelProtectionBypassToken', 'preloadedDbSessionUnwrapKey'] from counterfoil.ledgers as l), false, 'the credentials are not');
select is(counterfoil.run_snapshot('acme', 'r1') ->> 'status', 'running', 'the run has started');
select counterfoil.acknowledge_delivery('acme', 'r1', c.event_ids, 'me') from claimed as c;

-- The rest in three pieces.
delete from claimed;
insert into claimed select c.* from pg_temp.claim('r1') as c;
create function pg_temp.piece(p_first integer, p_last integer, p_chunk integer, p_count integer default 3) returns text language sql volatile parallel unsafe as $function$
  select format('select a::text from counterfoil.append_run_events(%L, %L, %L, %L, %L, %s, %s) as a', 'acme', 'r1', c.key, 'me',
    jsonb_path_query_array(c.events, '$[$first to $last]', jsonb_build_object('first', p_first, 'last', p_last)), p_chunk, p_count)
  from claimed as c
$function$;
select is((select jsonb_array_length(c.events) from claimed as c), 6, 'logs carry no event');
select pg_temp.raises(pg_temp.piece(2, 3, 2), 'RL005', 'chunk_out_of_order', 'the second piece cannot come first');
select results_eq(pg_temp.piece(0, 1, 1), array['(appended,3,4,f)'], 'the first piece');
select pg_temp.raises(pg_temp.piece(3, 3, 2), 'RL004', 'projected_events_mismatch', 'a piece leaves nothing out');
select pg_temp.raises(pg_temp.piece(1, 2, 2), 'RL004', 'projected_events_mismatch', 'and repeats nothing');
select pg_temp.raises(pg_temp.piece(2, 3, 2, 4), 'RL005', 'chunk_out_of_order', 'the number of pieces is the same for all');
select results_eq(pg_temp.piece(2, 3, 2), array['(appended,5,6,f)'], 'the second piece');
select is(counterfoil.run_snapshot('acme', 'r1') -> 'progress', '{"done": 2}', 'the latest progress');
select is(counterfoil.run_snapshot('acme', 'r1') ->> 'status', 'running', 'the wait is over');
select results_eq(pg_temp.piece(0, 1, 1), array['(replayed,3,4,f)'], 'a repeated piece answers the same');
select pg_temp.raises(pg_temp.piece(0, 1, 1, 4), 'RL003', 'p_chunk_count', 'of the same number of pieces');
select pg_temp.raises(pg_temp.piece(4, 4, 3), 'RL004', 'projected_events_mismatch', 'the last piece ends where the delivery ends');
select results_eq(pg_temp.piece(4, 5, 3), array['(appended,7,8,t)'], 'the last piece completes the delivery');
select results_eq(pg_temp.piece(0, 1, 1), array['(replayed,3,4,t)'], 'a repeat then knows that all have come');
select counterfoil.acknowledge_delivery('acme', 'r1', c.event_ids, 'me') from claimed as c;
select results_eq(pg_temp.piece(4, 5, 3), array['(replayed,7,8,t)'], 'also after the acknowledgement');

select is(pg_temp.history('r1'), array['1 run.created', '2 run.started', '3 run.progress', '4 run.progress', '5 run.waiting', '6 run.resumed',
  '7 log.appended', '8 run.completed'], 'the history has no gap and no repeat');
select is((select array[l.status, l.result_summary::text, l.event_count::text, (l.ended_at = now())::text] from counterfoil.ledgers as l),
  array['completed', '{"n": 3}', '8', 'true'], 'the snapshot at the end');
select is((select array_agg(e.position) from counterfoil.read_run_events('acme', 'r1', 3, 2) as e), array[4, 5]::bigint [], 'pages go on after a position');

-- That all pieces of one delivery have come says nothing of the next.
select pg_temp.run_with('r2', array['run.progress', 'run.progress'], array['{"n": 1}', '{"n": 2}']::jsonb []);
select pg_temp.deliver('r2') from generate_series(1, 2);
create function pg_temp.half(p_chunk integer) returns text language sql volatile parallel unsafe as $function$
  select a::text
  from claimed as c, counterfoil.append_run_events('acme', 'r2', c.key, 'me', jsonb_build_array(c.events -> (p_chunk - 1)), p_chunk, 2) as a
$function$;
delete from claimed;
insert into claimed select c.* from pg_temp.claim('r2') as c;
select pg_temp.half(k) from generate_series(1, 2) as k;
select counterfoil.acknowledge_delivery('acme', 'r2', c.event_ids, 'me') from claimed as c;
select counterfoil.append_fact('acme', 'r2', m, 'run.progress', '{}') from unnest(array['m1', 'm2']) as m;
delete from claimed;
insert into claimed select c.* from pg_temp.claim('r2') as c;
select is(pg_temp.half(1), '(appended,5,5,f)', 'the first piece of the next delivery');
select is(pg_temp.half(1), '(replayed,5,5,f)', 'which is repeated before the second has come');

select * from finish();
rollback;
