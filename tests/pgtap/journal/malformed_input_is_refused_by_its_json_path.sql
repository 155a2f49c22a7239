begin;
\ir ../setup.psql
\ir setup.psql
select plan(13);

create function pg_temp.refuses(p_payload jsonb, p_path text) returns text language sql as $function$
  select pg_temp.raises(format('select counterfoil.check_projection_input(%L)', p_payload), 'P0001', p_path)
$function$;

select pg_temp.refuses('{"events": 1}', '$.events');
select pg_temp.refuses('{"events": [{}, 2]}', '$.events[1]');
select pg_temp.refuses('{"terminalProgressEvents": "x"}', '$.terminalProgressEvents');
select pg_temp.refuses('{"lines": {}}', '$.lines');
select pg_temp.refuses('{"terminalLogLines": ["a", 1]}', '$.terminalLogLines[1]');
select pg_temp.refuses('{"lines": ["a"], "lineContexts": []}', '$.lineContexts');
select pg_temp.refuses('{"lines": ["a"], "lineIds": ["1", "2"]}', '$.lineIds');
select pg_temp.refuses('{"lineIds": ["1"]}', '$.lineIds');
select pg_temp.refuses('{"terminalLogLines": ["a"], "terminalLogIds": [""]}', '$.terminalLogIds[0]');
select pg_temp.refuses('{"events": [{"lines": ["a"], "lineIds": 7}]}', '$.events[0].lineIds');
select pg_temp.refuses('{"producerAttempt": -1}', '$.producerAttempt');
select pg_temp.refuses('{"events": [{"firstPosition": "x"}]}', '$.events[0].firstPosition');
select lives_ok(
  $$ select counterfoil.check_projection_input('{"lines": null, "events": [], "terminalLogLines": ["a"], "terminalLogIds": [null]}') $$,
  'lists may be empty or null, ids may be null');

select * from finish();
rollback;
