begin;
\ir ../setup.psql
\ir setup.psql
select plan(41);

select pg_temp.run_with('r1', array['run.progress', 'run.completed'], array['{"done": 1}', '{}']::jsonb []);
select pg_temp.run_with('r2');

create temporary table claimed on commit drop as select c.* from pg_temp.claim('r1') as c;
create function pg_temp.created(p_run_id text, p_key text, p_owner text, p_events jsonb) returns text language sql immutable parallel safe as $function$
  select format('select counterfoil.append_run_created(%L, %L, %L, %L, %L)', 'acme', p_run_id, p_key, p_owner, p_events)
$function$;

select pg_temp.raises(pg_temp.created('r1', c.key, 'you', c.events), 'RL004', 'head_lease_owner_mismatch') from claimed as c;
select pg_temp.raises(pg_temp.created('r1', 'events:r1:none', 'me', c.events), 'RL004', 'receipt_boundary_mismatch') from claimed as c;
select pg_temp.raises(pg_temp.created('r2', c.key, 'me', c.events), 'RL004', 'delivery_lease_not_current') from claimed as c;
select pg_temp.raises(pg_temp.created('none', c.key, 'me', c.events), 'RL002', 'run_not_found') from claimed as c;
select pg_temp.raises(pg_temp.created('r1', c.key, 'me', jsonb_set(c.events, '{0,data,playName}', '"forged"')), 'RL004', 'projected_events_mismatch') from claimed as c;
update counterfoil.lanes set lease_expires_at = now() - interval '1 second' where run_id = 'r1';
select pg_temp.raises(pg_temp.created('r1', c.key, 'me', c.events), 'RL004', 'prefix_lease_expired') from claimed as c;
update counterfoil.lanes set lease_expires_at = now() + interval '1 minute' where run_id = 'r1';
select is((select count(*) from counterfoil.ledgers), 0::bigint, 'a refused append leaves no trace');

-- Malformed.
select pg_temp.raises(pg_temp.created('', 'k', 'me', '[]'), 'RL001', 'p_run_id');
select pg_temp.raises(pg_temp.created('r1', '', 'me', '[]'), 'RL001', 'p_idempotency_key');
select pg_temp.raises(pg_temp.created('r1', 'k', '', '[]'), 'RL001', 'p_lease_owner');
select pg_temp.raises(pg_temp.created('r1', 'k', 'me', null), 'RL001', 'p_events');
select pg_temp.raises(pg_temp.created('r1', 'k', 'me', '{}'), 'RL001', 'p_events');
select pg_temp.raises(pg_temp.created('r1', 'k', 'me', '[]'), 'RL001', 'p_events', 'a start is one event');
select pg_temp.raises(pg_temp.created('r1', 'k', 'me', '[7]'), 'RL001', 'p_events[0]');
select pg_temp.raises(pg_temp.created('r1', 'k', 'me', c.events #- '{0,type}'), 'RL001', 'p_events[0].type') from claimed as c;
select pg_temp.raises(pg_temp.created('r1', 'k', 'me', c.events #- '{0,eventId}'), 'RL001', 'p_events[0].eventId') from claimed as c;
select pg_temp.raises(pg_temp.created('r1', 'k', 'me', jsonb_set(c.events, '{0,item}', '"0"')), 'RL001', 'p_events[0].item') from claimed as c;
select pg_temp.raises(pg_temp.created('r1', 'k', 'me', jsonb_set(c.events, '{0,seq}', '1.5')), 'RL001', 'p_events[0].seq') from claimed as c;
select pg_temp.raises(pg_temp.created('r1', 'k', 'me', jsonb_set(c.events, '{0,occurredAt}', '7')), 'RL001', 'p_events[0].occurredAt') from claimed as c;
select pg_temp.raises(pg_temp.created('r1', 'k', 'me', c.events || c.events), 'RL001', 'p_events', 'a start is delivered alone') from claimed as c;
select pg_temp.raises(format('select counterfoil.append_run_events(%L, %L, %L, %L, %L)', 'acme', 'r1', c.key, 'me', c.events), 'RL001', 'p_events[0].type',
  'a start has its own endpoint') from claimed as c;
select pg_temp.raises(format('select counterfoil.append_run_events(%L, %L, %L, %L, %L, 0, 1)', 'acme', 'r1', 'k', 'me', '[]'), 'RL001', 'p_chunk');
select pg_temp.raises(format('select counterfoil.append_run_events(%L, %L, %L, %L, %L, 3, 2)', 'acme', 'r1', 'k', 'me', '[]'), 'RL001', 'p_chunk');
select pg_temp.raises(format('select counterfoil.append_run_events(%L, %L, %L, %L, %L, 1, 0)', 'acme', 'r1', 'k', 'me', '[]'), 'RL001', 'p_chunk_count');
select pg_temp.raises($$ select counterfoil.append_run_started('acme', 'r1', 'k', 'me', '[]', '[]') $$, 'RL001', 'p_launch');
select pg_temp.raises($$ select counterfoil.append_run_started('acme', 'r1', 'k', 'me', '[]', '{"orgId": "acme", "runId": "r2"}') $$, 'RL001', 'p_launch.runId');
select pg_temp.raises($$ select counterfoil.append_run_started('acme', 'r1', 'k', 'me', '[]', '{"orgId": "b", "runId": "r1"}') $$, 'RL001', 'p_launch.orgId');
select pg_temp.raises(format('select counterfoil.append_run_started(%L, %L, %L, %L, %L, %L)', 'acme', 'r1', 'k', 'me', '[]',
  jsonb_build_object('orgId', 'acme', 'runId', 'r1', 'input', repeat('x', 1048576))), 'RL008', 'p_launch');
select pg_temp.raises($$ select counterfoil.read_run_events('acme', 'r1', -1) $$, 'RL001', 'p_after');
select pg_temp.raises($$ select counterfoil.read_run_events('acme', 'r1', 0, 0) $$, 'RL001', 'p_limit');
select pg_temp.raises($$ select counterfoil.run_snapshot('', 'r1') $$, 'RL001', 'p_org_id');
select pg_temp.raises($$ select counterfoil.run_snapshot('acme', '') $$, 'RL001', 'p_run_id');
select pg_temp.raises($$ select counterfoil.read_run_events('', 'r1') $$, 'RL001', 'p_org_id');
select pg_temp.raises($$ select counterfoil.read_run_events('acme', '') $$, 'RL001', 'p_run_id');
select pg_temp.raises($$ select counterfoil.append_run_events(null, 'r1', 'k', 'me', '[]') $$, 'RL001', 'p_org_id');

-- The ledger keeps its own order even against a proof: what its sender did not see, it does.
select counterfoil.release_delivery('acme', 'r1', c.event_ids, 'me') from claimed as c;
select pg_temp.deliver('r1');
select pg_temp.deliver('r1');
select pg_temp.deliver('r1');
select is((select l.status from counterfoil.ledgers as l where l.run_id = 'r1'), 'completed', 'the run has ended');
update counterfoil.ledgers set status = 'running', ended_at = null where run_id = 'r1';
select throws_ok(
  $$ insert into counterfoil.ledger_events select e.org_id, e.run_id, 9, 'run.failed', 'x', 0, now(), '{}', now() from counterfoil.ledger_events as e limit 1 $$,
  '23505', null, 'a ledger has one terminal');
select throws_ok($$ update counterfoil.ledgers set last_position = 7 $$, '23514', null, 'and no gap');
select throws_ok(
  $$ insert into counterfoil.ledger_events values ('acme', 'r1', 9, 'run.created', 'x', 0, now(), '{}', now()) $$, '23514', null, 'run.created is first');

-- A fact that was delivered under another key before, as when a receipt is frozen anew after an operator stepped in.
select pg_temp.deliver('r2');
select pg_temp.deliver('r2');
select counterfoil.write_facts('acme', array['r2', 'r2'], array['a', 'b'], array['run.progress', 'run.progress'], array['{"n": 1}', '{"n": 2}']::jsonb [], now());
delete from claimed;
insert into claimed select c.* from pg_temp.claim('r2') as c;
insert into counterfoil.ledger_events
select 'acme', 'r2', 3, 'run.progress', 'a', 0, now(), c.events -> 0, now() from claimed as c;
update counterfoil.ledgers set last_position = 3, event_count = 3, last_seq = 3 where run_id = 'r2';
select is((select a::text from claimed as c, counterfoil.append_run_events('acme', 'r2', c.key, 'me', c.events) as a), '(appended,4,4,t)', 'is not appended twice');
select is((select k.events from counterfoil.ledger_appends as k where k.run_id = 'r2' and k.last_position = 4), 2, 'though the piece held it');

select * from finish();
rollback;
