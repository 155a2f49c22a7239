-- An operator skips a fact of a receipt that the receiver has, in whole or in part: the rest of it, with the run's terminal, is
-- delivered all the same, under the key that is the terminal's.
begin;
\ir ../setup.psql
\ir setup.psql
select plan(12);

update counterfoil.settings set value = '2' where name = 'delivery_piece_max_events';
select pg_temp.run_with(r, array['run.progress', 'run.progress', 'run.completed'], array['{"n": 1}', '{"n": 2}', '{}']::jsonb [])
from unnest(array['whole', 'part']) as r;
select pg_temp.deliver(r) from unnest(array['whole', 'part']) as r cross join generate_series(1, 2);

-- Claims what is next of a run and appends its pieces up to the given one; what each answered.
create function pg_temp.append(p_run_id text, p_pieces integer) returns text [] language sql volatile parallel unsafe as $function$
  select array_agg((
    select a::text
    from counterfoil.append_run_events('acme', p_run_id, c.key, 'me', p.events, p.chunk, p.chunk_count) as a
  ) order by p.chunk)
  from pg_temp.claim(p_run_id) as c
  cross join lateral counterfoil.plan_delivery_pieces('acme', p_run_id, c.event_ids, 'me') as p
  where p.chunk <= p_pieces
$function$;
-- Blames a fact for the failure of its delivery, and skips it.
create function pg_temp.skip(p_run_id text, p_event_id text) returns void language sql volatile parallel unsafe as $function$
  select counterfoil.settle_delivery_failure('acme', p_run_id, array_agg(o.event_id), 'me',
    jsonb_build_object('message', 'refused', 'retryable', false, 'eventId', p_event_id))
  from counterfoil.outbox as o
  where o.run_id = p_run_id and o.seq > 2;
  select counterfoil.skip_blocked('acme', p_run_id, p_event_id, 'nonsense');
$function$;

select is(pg_temp.append('whole', 2), array['(appended,3,4,f)', '(appended,5,5,t)'], 'a receiver has all of it, and its reply is lost');
select pg_temp.skip('whole', 'whole-f1');
select is(pg_temp.append('whole', 2), array['(appended,6,5,t)'], 'the rest brings nothing new');
select counterfoil.release_delivery('acme', 'whole', array['whole-f2', 'whole-f3'], 'me');
select is(pg_temp.append('whole', 2), array['(replayed,6,5,t)'], 'and is known from then on');
select lives_ok(
  $$ select counterfoil.acknowledge_delivery('acme', 'whole', array['whole-f2', 'whole-f3'], 'me') $$, 'so it is acknowledged');
select is(
  pg_temp.history('whole'), array['1 run.created', '2 run.started', '3 run.progress', '4 run.progress', '5 run.completed'],
  'the ledger keeps what it was given');

select is(pg_temp.append('part', 1), array['(appended,3,4,f)'], 'a receiver has the first piece');
select pg_temp.skip('part', 'part-f2');
select is(pg_temp.append('part', 2), array['(appended,5,4,t)'], 'what comes before the skipped one is known');
select counterfoil.acknowledge_delivery('acme', 'part', array['part-f1'], 'me');
-- Retention may have forgotten the skipped fact by then.
delete from counterfoil.deliveries where outcome = 'skipped';
select is(pg_temp.append('part', 2), array['(appended,5,5,t)'], 'the rest, cut anew, brings the terminal');
select is(
  pg_temp.history('part'), array['1 run.created', '2 run.started', '3 run.progress', '4 run.progress', '5 run.completed'],
  'once and in order');
select pg_temp.raises(
  format('select counterfoil.append_run_events(%L, %L, %L, %L, %L)', 'acme', 'part', l.receipt_key, 'me', '[]'),
  'RL004', 'projected_events_mismatch', 'anything else under that key is refused as before')
from counterfoil.lanes as l
where l.run_id = 'part';

-- A skip that dissolved no receipt changes nothing about what a key stands for.
select pg_temp.run_with('free', array['run.progress', 'run.progress', 'run.completed'], array['{"n": 1}', '{"n": 2}', '{}']::jsonb []);
select pg_temp.deliver('free') from generate_series(1, 2);
select from counterfoil.claim_deliveries('me', p_org_id => 'acme', p_run_id => 'free');
select pg_temp.skip('free', 'free-f1');
select is(pg_temp.append('free', 2), array['(appended,3,4,t)'], 'nothing was frozen, and the rest is appended');
select pg_temp.raises(
  format('select counterfoil.append_run_events(%L, %L, %L, %L, %L)', 'acme', 'free', l.receipt_key, 'me', '[]'),
  'RL003', 'p_events', 'under a key that nothing else can have')
from counterfoil.lanes as l
where l.run_id = 'free';

select * from finish();
rollback;
