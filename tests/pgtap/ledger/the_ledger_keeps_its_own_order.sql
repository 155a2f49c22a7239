-- What the sender's proof should have prevented, the receiver refuses all the same. A proof that says yes to everything takes the
-- real one's place for this transaction.
begin;
\ir ../setup.psql
select plan(20);

create or replace function counterfoil.assert_delivery(
  p_org_id text, p_run_id text, p_lease_owner text, p_idempotency_key text, p_projected_events jsonb default null,
  p_chunk integer default null, p_chunk_count integer default null
)
returns table (first_seq bigint, last_seq bigint, first_index integer, event_total integer)
language sql volatile parallel unsafe as $function$
  select 1::bigint, 1::bigint, 0, jsonb_array_length(p_projected_events)
$function$;

create function pg_temp.event(p_seq integer, p_type text, p_id text, p_data jsonb default '{}') returns jsonb language sql immutable parallel safe as $function$
  select jsonb_build_array(jsonb_build_object('type', p_type, 'eventId', p_id, 'seq', p_seq, 'item', 0, 'occurredAt', '2026-01-02T03:04:05.678901Z', 'data', p_data))
$function$;
create function pg_temp.append(p_key text, p_events jsonb) returns text language sql immutable parallel safe as $function$
  select format('select a::text from counterfoil.append_run_events(%L, %L, %L, %L, %L) as a', 'acme', 'r1', p_key, 'me', p_events)
$function$;

-- An operator skipped run.created, which could not be delivered: the history begins with what comes next.
select results_eq(pg_temp.append('1', pg_temp.event(1, 'run.progress', 'p1')), array['(appended,1,1,t)'], 'a history may begin without its start');
select is((select (l.status, l.created_at = '2026-01-02T03:04:05.678901Z')::text from counterfoil.ledgers as l), '(queued,t)', 'its first event says when');
select pg_temp.raises(format('select counterfoil.append_run_created(%L, %L, %L, %L, %L)', 'acme', 'r1', '2', 'me', pg_temp.event(2, 'run.created', 'c')),
  'RL005', 'start_not_first', 'run.created does not follow');
select is((select a::text from counterfoil.append_run_started('acme', 'r1', '3', 'me', pg_temp.event(3, 'run.started', 's'), null) as a), '(appended,2,2,t)',
  'run.started may be second');
select pg_temp.raises(format('select counterfoil.append_run_started(%L, %L, %L, %L, %L, null)', 'acme', 'r1', '4', 'me', pg_temp.event(4, 'run.started', 's2')),
  'RL005', 'start_not_first', 'but not third');

select pg_temp.raises(pg_temp.append('5', pg_temp.event(1, 'run.progress', 'p1', '{"other": 1}')), 'RL003', 'p_events[0]', 'an event never changes');
select results_eq(pg_temp.append('6', pg_temp.event(1, 'run.progress', 'p1')), array['(appended,3,2,t)'], 'one that is known adds nothing');
select results_eq(pg_temp.append('7', '[]'), array['(appended,3,2,t)'], 'nor does a delivery without events');

-- The outbox forgets sooner than the ledger: a fact appended anew after that has another place and time.
savepoint before_retention;
select results_eq(
  pg_temp.append('anew', replace((pg_temp.event(4, 'run.progress', 'p1') || pg_temp.event(5, 'run.progress', 'p2'))::text, '2026-01', '2026-03')::jsonb),
  array['(appended,3,3,t)'], 'of one that comes again after retention only what is new is added');
select results_eq(pg_temp.append('anew2', pg_temp.event(6, 'run.progress', 'p1')), array['(appended,4,3,t)'], 'or nothing');
select pg_temp.raises(pg_temp.append('anew3', pg_temp.event(7, 'run.progress', 'p3') || pg_temp.event(8, 'run.progress', 'p1', '{"other": 1}')),
  'RL003', 'p_events[1]', 'and it has not changed either');
rollback to before_retention;

-- A fact of several events is known by each of them.
savepoint before_several;
select results_eq(pg_temp.append('i1', pg_temp.event(4, 'log.appended', 'm', '{"n": 0}')), array['(appended,3,3,t)'], 'the first event of a fact');
create temporary table several on commit drop as
select pg_temp.event(4, 'log.appended', 'm', '{"n": 0}') || jsonb_set(pg_temp.event(4, 'log.appended', 'm', '{"n": 1}'), '{0,item}', '1') as events;
select results_eq(pg_temp.append('i2', s.events), array['(appended,4,4,t)'], 'does not make its second known') from several as s;
select results_eq(pg_temp.append('i3', s.events), array['(appended,5,4,t)'], 'each is compared with itself') from several as s;
rollback to before_several;

select pg_temp.raises(pg_temp.append('8', pg_temp.event(6, 'run.failed', 't1') || pg_temp.event(7, 'run.progress', 'p2')), 'RL005', 'terminal_not_last');
select pg_temp.raises(pg_temp.append('9', pg_temp.event(6, 'run.failed', 't1') || pg_temp.event(7, 'run.failed', 't2')), 'RL005', 'terminal_not_last');
select results_eq(pg_temp.append('10', pg_temp.event(5, 'run.waiting', 'w', '{"reason": "r"}') || pg_temp.event(6, 'run.failed', 't1', '{"error": {"message": "m"}, "resultSummary": null}')),
  array['(appended,3,4,t)'], 'a terminal ends the history');
select is((select jsonb_build_array(l.status, l.error, l.waiting, l.result_summary) from counterfoil.ledgers as l), '["failed", {"message": "m"}, null, null]',
  'the snapshot: no wait outlives the run, and JSON null is none');
select pg_temp.raises(pg_temp.append('11', pg_temp.event(8, 'run.progress', 'p3')), 'RL005', 'ledger_ended', 'nothing follows');
select results_eq(pg_temp.append('12', pg_temp.event(6, 'run.failed', 't1', '{"error": {"message": "m"}, "resultSummary": null}')), array['(appended,5,4,t)'],
  'but what is known may come again');

select * from finish();
rollback;
