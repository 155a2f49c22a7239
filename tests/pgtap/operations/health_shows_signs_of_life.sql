begin;
\ir ../setup.psql
\ir setup.psql
select plan(29);

select is(
  (select array_agg(k.key order by k.key) from jsonb_object_keys(counterfoil.health()) as k (key)),
  array['admission', 'at', 'attempts', 'disk', 'lanes', 'listeners', 'queue', 'receipts', 'retentionBacklog', 'schedules', 'schemaVersion', 'workers'], 'what there is to see');
select is(counterfoil.health() ->> 'schemaVersion', counterfoil.schema_version()::text, 'the schema version');
select is(counterfoil.schema_version(), (select max(m.version) from counterfoil.schema_migrations as m), 'is that of the last migration');

select is(counterfoil.health() #> '{lanes,lifecycle,pendingRuns}', '{"count": 0, "atLeast": false}', 'nothing is pending at first');
select pg_temp.launch('r1');
select pg_temp.launch('r2');
select pg_temp.launch('r3', '{"playName": "nobody knows"}');
select pg_temp.launch('r4', jsonb_build_object('playName', 'later', 'availableAt', to_jsonb(now() + interval '1 hour')));
select is(counterfoil.health() #> '{lanes,lifecycle,pendingRuns,count}', '4', 'pending runs of a lane');
select is(counterfoil.health() #> '{lanes,lifecycle,pendingFactsAtMost}', '4', 'and about how many facts');
select is(counterfoil.health() #> '{lanes,search,pendingRuns,count}', '0', 'each lane for itself');
update counterfoil.lanes set due_at = now() - interval '90 seconds' where run_id = 'r1';
select ok((counterfoil.health() #>> '{lanes,lifecycle,oldestAgeSeconds}')::numeric between 90 and 100, 'the age of the oldest');
select is(counterfoil.health() #> '{queue,ready,count}', '3', 'runs ready for a worker');
select is(counterfoil.health() #> '{queue,sleeping,count}', '1', 'and to be ready later');
select is(counterfoil.health() #> '{queue,unknownPlays}',
  '[{"playName": "later", "releaseLane": "default"}, {"playName": "nobody knows", "releaseLane": "default"}, {"playName": "p", "releaseLane": "default"}]',
  'without workers nobody knows a play');

insert into counterfoil.workers (worker, release_lane, plays, first_seen_at, last_seen_at) values
  ('w1', 'default', array['p', 'later'], now(), now()), ('w2', 'other', '{}', now(), now()),
  ('w3', 'default', array['nobody knows'], now(), now() - interval '6 minutes');
select is(counterfoil.health() #> '{queue,unknownPlays}', '[{"playName": "nobody knows", "releaseLane": "default"}]',
  'plays that only a dead worker, or one of another release, knows are told');
select is(counterfoil.health() -> 'workers', '2', 'workers seen lately');
insert into counterfoil.workers (worker, release_lane, plays, first_seen_at, last_seen_at) values ('w4', 'default', '{}', now(), now());
select is(counterfoil.health() #> '{queue,unknownPlays}', '[]', 'a worker without a list knows every play');

-- Leases.
update counterfoil.lanes set lease_owner = 'd', lease_through_seq = 1, lease_expires_at = now() + interval '1 minute' where run_id = 'r1';
update counterfoil.lanes set lease_owner = 'd', lease_through_seq = 1, lease_expires_at = now() - interval '1 minute' where run_id = 'r2';
select is(counterfoil.health() #> '{lanes,lifecycle,leases}', '{"live": 1, "expired": 1}', 'leases on lanes, live and expired');
update counterfoil.lanes set blocked_at = now() - interval '10 seconds' where run_id = 'r3';
select is(counterfoil.health() #> '{lanes,lifecycle,blockedRuns,count}', '1', 'blocked lanes');
select ok((counterfoil.health() #>> '{lanes,lifecycle,oldestBlockedAgeSeconds}')::numeric between 10 and 20, 'since when');
select is(counterfoil.health() #> '{lanes,lifecycle,pendingRuns,count}', '3', 'are not counted as pending');
select is((select count(*) from counterfoil.claim_attempts('w1', 2, 60, array['p'], 'default')), 2::bigint, 'two attempts begin');
update counterfoil.attempts set lease_expires_at = now() - interval '1 second' where run_id = 'r1';
select is(counterfoil.health() -> 'attempts', '{"active": {"count": 2, "atLeast": false}, "leases": {"live": 1, "expired": 1}}', 'attempts and their leases');

-- Schedules.
insert into counterfoil.schedules (
  org_id, name, schedule_id, cron, minutes, hours, days, last_day, last_working_day, months, weekdays, nth_weekdays, day_and_weekday,
  every_real_hour, time_zone, launch, overlap, catch_up, created_at, next_fire_at, look_at, last_outcome)
select 'acme', s.name, gen_random_uuid(), '@daily', '{0}', '{0}', '{1}', false, false, '{1}', '{1}', '{}', true, false, 'UTC', '{}', 'skip', 'one', now(), s.at, s.at, s.outcome
from (values ('late', now() - interval '90 seconds', null), ('refused', now() + interval '1 hour', 'refused'), ('fine', now() + interval '1 hour', 'admitted')) as s (name, at, outcome);
select ok(
  counterfoil.health() -> 'schedules' @> '{"due": {"count": 1, "atLeast": false}, "refused": {"count": 1, "atLeast": false}}'
  and (counterfoil.health() #>> '{schedules,oldestDueAgeSeconds}')::numeric between 90 and 100, 'schedules that nobody fires, or whose launch was refused');

-- Sleepers.
select matches(counterfoil.start_listening('me', 'attempts', 60), '^counterfoil_\d+_attempts$', 'a sleeper is told its channel');
select counterfoil.start_listening('me', 'search', 60);
select is(counterfoil.health() -> 'listeners', '2', 'sleepers');
select counterfoil.stop_listening('me');
select is(counterfoil.health() -> 'listeners', '0', 'are struck off all queues');
select pg_temp.raises($$ select counterfoil.start_listening('me', 'none', 60) $$, 'RL001', 'p_queue');
select pg_temp.raises($$ select counterfoil.start_listening('me', 'search', 0) $$, 'RL001', 'p_seconds');
select pg_temp.raises($$ select counterfoil.start_listening('', 'search', 60) $$, 'RL001', 'p_listener');
select pg_temp.raises($$ select counterfoil.stop_listening(null) $$, 'RL001', 'p_listener');

-- Retention.
insert into counterfoil.step_receipts (org_id, key, status, run_id, created_at, claimed_at, updated_at, settled_at)
select 'acme', 'k' || i, 'completed', 'r1', now(), now(), now(), now() - make_interval(days => i * 60) from generate_series(1, 3) as i;
select is(counterfoil.health() #> '{retentionBacklog,receipts,count}', '2', 'what retention has still to do');

select * from finish();
rollback;
