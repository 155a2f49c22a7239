begin;
\ir ../setup.psql
\ir setup.psql
select plan(24);

select pg_temp.run_with('r1', array['run.progress'], array['{"n": 1.50}']::jsonb []);
-- The answer's status, code (or its body, when all is well) and detail; a refusal without a text or a hint is no answer.
create function pg_temp.ask(p_action text, p_body text, p_scope jsonb default '{"orgId": "acme", "playName": "p", "runId": "r1"}')
returns jsonb language sql volatile parallel unsafe as $function$
  select jsonb_build_array(d.status, coalesce(d.body -> 'code', d.body), d.body -> 'detail')
  from counterfoil.dispatch_ledger_action(p_scope, p_action, p_body::jsonb) as d
  where d.status = 200 or (d.body ->> 'error' <> '' and d.body ->> 'hint' <> '')
$function$;
create function pg_temp.body(p_rest jsonb default '{}') returns text language sql immutable parallel safe as $function$
  select ('{"runId": "r1", "idempotencyKey": "k", "leaseOwner": "me", "events": []}'::jsonb || p_rest)::text
$function$;

select is(pg_temp.ask('deleted', pg_temp.body()), '[404, "unknown_action", "action"]');
select is(pg_temp.ask(null, pg_temp.body()), '[404, "unknown_action", "action"]');
select is(pg_temp.ask('events', pg_temp.body(), '{"orgId": "acme", "runId": "r1"}'), '[403, "scope_incomplete", null]');
select is(pg_temp.ask('events', pg_temp.body(), null), '[403, "scope_incomplete", null]');
select is(pg_temp.ask('events', null), '[400, "invalid_argument", "body"]');
select is(pg_temp.ask('events', '[]'), '[400, "invalid_argument", "body"]');
select is(pg_temp.ask('events', pg_temp.body('{"runId": "r2"}')), '[403, "scope_mismatch", null]');
select is(pg_temp.ask('events', '{"idempotencyKey": "k"}'), '[403, "scope_mismatch", null]', 'the run must be named');
select is(pg_temp.ask('events', pg_temp.body('{"playName": "q"}')), '[403, "scope_mismatch", null]');
select is(pg_temp.ask('events', pg_temp.body('{"orgId": "b"}')), '[403, "scope_mismatch", null]');
select is(pg_temp.ask('events', pg_temp.body('{"idempotencyKey": null}')), '[400, "invalid_argument", "idempotencyKey"]');
select is(pg_temp.ask('events', pg_temp.body('{"leaseOwner": 7}')), '[400, "invalid_argument", "leaseOwner"]');
select is(pg_temp.ask('events', pg_temp.body('{"events": {}}')), '[400, "invalid_argument", "events"]');
select is(pg_temp.ask('events', pg_temp.body('{"chunk": "1"}')), '[400, "invalid_argument", "chunk"]');
select is(pg_temp.ask('events', pg_temp.body('{"chunk": 1.5}')), '[400, "invalid_argument", "chunk"]');
select is(pg_temp.ask('events', pg_temp.body('{"chunkCount": -1}')), '[400, "invalid_argument", "chunkCount"]');
select is(pg_temp.ask('started', pg_temp.body('{"launch": "x"}')), '[400, "invalid_argument", "launch"]');
select pg_temp.raises($$ select pg_temp.ask('events', pg_temp.body()) $$, 'RL004', 'delivery_lease_not_current', 'what the functions raise, the gateway maps');
select pg_temp.raises($$ select pg_temp.ask('started', pg_temp.body('{"launch": {"runId": "r2", "orgId": "acme"}}')) $$, 'RL001', 'p_launch.runId');

-- The way through.
create function pg_temp.post(p_action text, p_rest jsonb default '{}') returns jsonb language plpgsql volatile parallel unsafe as $function$
declare
  v_claim record;
  v_answer jsonb;
begin
  select c.* into v_claim from pg_temp.claim('r1') as c;
  v_answer := pg_temp.ask(p_action, pg_temp.body(jsonb_build_object('idempotencyKey', v_claim.key, 'events', v_claim.events) || p_rest)) -> 1;
  perform counterfoil.acknowledge_delivery('acme', 'r1', v_claim.event_ids, 'me');
  return v_answer;
end
$function$;
select is(pg_temp.post('created'), '{"outcome": "appended", "firstPosition": 1, "lastPosition": 1, "complete": true, "runLedgerIngressPrefixBatching": true}', 'created');
select is(pg_temp.post('started', '{"launch": {"orgId": "acme", "runId": "r1", "executorToken": "t", "x": 1}}') ->> 'lastPosition', '2', 'started');
select is((select l.launch from counterfoil.ledgers as l), '{"orgId": "acme", "runId": "r1", "x": 1}', 'the launch is kept without its token');
select is(pg_temp.post('events', '{"playName": "p", "chunk": 1, "chunkCount": 1}') ->> 'lastPosition', '3', 'events');
select is((select d.headers from counterfoil.dispatch_ledger_action('{}', 'events', '{}') as d),
  '{"content-type": "application/json", "x-counterfoil-error-code": "scope_incomplete"}', 'a refusal has its code in a header');

select * from finish();
rollback;
