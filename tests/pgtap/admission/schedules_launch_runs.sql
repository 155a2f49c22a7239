-- Issue 4: each firing of a schedule is admitted once, with a pin of its source; overlap and catch-up policies; pause.
begin;
\ir ../setup.psql
\ir setup.psql
select plan(47);

-- Every minute, parsed, with other fields on top.
create function pg_temp.cron(p_more jsonb default '{}')
returns jsonb language sql immutable parallel unsafe as $function$
  select jsonb_build_object('expression', '* * * * *', 'minutes', (select jsonb_agg(m) from generate_series(0, 59) as m),
    'hours', (select jsonb_agg(h) from generate_series(0, 23) as h), 'days', (select jsonb_agg(d) from generate_series(1, 31) as d),
    'months', (select jsonb_agg(m) from generate_series(1, 12) as m), 'weekdays', '[0, 1, 2, 3, 4, 5, 6]'::jsonb, 'nthWeekdays', '[]'::jsonb,
    'lastDay', false, 'lastWorkingDay', false, 'dayAndWeekday', true, 'everyRealHour', true) || p_more
$function$;
create function pg_temp.template(p_more jsonb default '{}')
returns jsonb language sql immutable parallel unsafe as $function$ select pg_temp.launch(p_more) - array['orgId', 'runId'] $function$;
create function pg_temp.make(
  p_name text, p_overlap text default 'skip', p_catch_up text default 'one', p_seconds integer default null, p_more jsonb default '{}'
)
returns text language sql volatile parallel unsafe as $function$
  select c.outcome
  from counterfoil.create_schedule(
    'org', p_name, pg_temp.cron(), 'Europe/Berlin', pg_temp.template(p_more), p_overlap, p_catch_up, p_seconds
  ) as c
$function$;
-- The schedule is due, the given time ago.
create function pg_temp.miss(p_name text, p_ago interval)
returns void language sql volatile parallel unsafe as $function$
  update counterfoil.schedules as s
  set next_fire_at = date_trunc('minute', clock_timestamp()) - p_ago, look_at = clock_timestamp() - interval '1 second'
  where s.name = p_name
$function$;
-- Outcomes of one call, in order.
create function pg_temp.fire()
returns text[] language sql volatile parallel unsafe as $function$
  select coalesce(array_agg(f.outcome), '{}') from counterfoil.fire_due_schedules(100) as f
$function$;
create function pg_temp.runs_of(p_name text)
returns bigint language sql stable parallel unsafe as $function$
  select count(*) from counterfoil.launches as l where l.launch #>> '{schedule,name}' = p_name
$function$;
create function pg_temp.end_runs()
returns void language sql volatile parallel unsafe as $function$
  select counterfoil.cancel_run(r.org_id, r.run_id, null) from counterfoil.runs as r where r.ended_at is null
$function$;

-- Not over the end of a minute, or another firing falls due.
select pg_sleep(60.5 - extract(second from clock_timestamp())) where extract(second from clock_timestamp()) > 55;
select is(pg_temp.make('a'), 'created', 'a schedule is made');
select is(pg_temp.make('a'), 'replayed', 'made again it is the same');
select pg_temp.raises($$ select pg_temp.make('a', 'allow', 'all') $$, 'RL003', 'p_catch_up, p_catch_up_seconds, p_overlap', 'another of the name is refused by what differs');
select is(pg_temp.fire(), '{}', 'nothing fires before its time');
select pg_temp.miss('a', '0 minutes');
select is(pg_temp.fire(), '{admitted}', 'what is due fires');
select is(pg_temp.fire(), '{}', 'once');
select is(pg_temp.runs_of('a'), 1::bigint, 'and launches one run');
select is(
    (select (l.launch -> 'schedule') - array['scheduleId', 'fireAt'] from counterfoil.launches as l),
    '{"name": "a", "cron": "* * * * *", "timeZone": "Europe/Berlin"}', 'its launch says where it comes from'
);
select ok(
    l.run_id = format('schedule:a:%s', to_char((l.launch #>> '{schedule,fireAt}')::timestamptz at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI"Z"'))
    and l.launch #>> '{schedule,scheduleId}' = s.schedule_id::text, 'and its id when it fired'
)
from counterfoil.launches as l cross join counterfoil.schedules as s;
select is((select s.next_fire_at > clock_timestamp() and s.look_at = s.next_fire_at from counterfoil.schedules as s), true, 'the next firing is ahead');

-- Overlap.
select pg_temp.miss('a', '-1 minute');
update counterfoil.schedules set next_fire_at = next_fire_at - interval '1 minute' where name = 'a';
select is(pg_temp.fire(), '{skipped}', 'skip: a firing is left out while the run before has not ended');
select pg_temp.end_runs();
delete from counterfoil.schedules;
select is(pg_temp.make('b', 'buffer', 'all'), 'created', 'a schedule that buffers one firing');
select pg_temp.miss('b', '3 minutes');
select is(pg_temp.fire(), '{admitted,buffered,skipped,skipped}', 'buffer: one waits, more are left out');
select is((select s.look_at < s.next_fire_at or s.look_at < clock_timestamp() + interval '6 seconds' from counterfoil.schedules as s), true, 'it is looked for soon');
update counterfoil.schedules set look_at = clock_timestamp() - interval '1 second';
select is(pg_temp.fire(), '{}', 'it waits while the run lasts');
select pg_temp.end_runs();
update counterfoil.schedules set look_at = clock_timestamp() - interval '1 second';
select is(pg_temp.fire(), '{admitted}', 'and starts when it has ended');
select is((select s.buffered_at from counterfoil.schedules as s), null, 'once');
select is(pg_temp.runs_of('b'), 2::bigint, 'two runs came of it');
delete from counterfoil.schedules;
select is(pg_temp.make('c', 'allow', 'all'), 'created', 'a schedule whose runs may overlap');
select pg_temp.miss('c', '3 minutes');
select is(pg_temp.fire(), '{admitted,admitted,admitted,admitted}', 'allow and all: every missed firing is made up for');

-- Catch-up.
delete from counterfoil.schedules;
select is(pg_temp.make('d', 'allow', 'all', 120), 'created', 'within a window');
select pg_temp.miss('d', '10 minutes');
select ok((f.outcomes)[1] = 'missed' and cardinality(f.outcomes) between 3 and 4 and (f.outcomes)[2] = 'admitted', 'what is older than the window is left out: ' || f.outcomes::text)
from (select pg_temp.fire() as outcomes offset 0) as f;
delete from counterfoil.schedules;
select is(pg_temp.make('e'), 'created', 'one');
select pg_temp.miss('e', '400 days');
select is(pg_temp.fire(), '{missed,admitted}', 'one: only the latest is made up for');
select ok(s.last_fire_at > clock_timestamp() - interval '1 minute', 'however much was missed') from counterfoil.schedules as s;
delete from counterfoil.schedules;
select is(pg_temp.make('f', 'allow', 'none'), 'created', 'none');
select pg_temp.miss('f', '2 hours');
select is((pg_temp.fire())[1], 'missed', 'none: what was missed is missed');
select ok(pg_temp.runs_of('f') <= 1, 'but for a firing that is less than a minute late');

-- Pause, resume, list, delete.
select is((select p.outcome from counterfoil.pause_schedule('org', 'f') as p), 'paused', 'a schedule is paused');
select is((select p.outcome from counterfoil.pause_schedule('org', 'f') as p), 'already_paused', 'again changes nothing');
select is((select s.next_fire_at from counterfoil.list_schedules('org') as s), null, 'it fires no more');
select is((select count(*) from counterfoil.schedule_fire_times('org', 'f', 3)), 3::bigint, 'it still says when it would');
select is((select r.outcome from counterfoil.resume_schedule('org', 'f') as r), 'active', 'resumed');
select ok(s.next_fire_at > clock_timestamp(), 'it goes on from now') from counterfoil.schedules as s;
select ok(s.schedule #>> '{launch,playName}' = 'audit' and not s.schedule -> 'launch' ? 'executorToken', 'its list shows no token') from counterfoil.list_schedules('org') as s;
select ok(counterfoil.delete_schedule('org', 'f') and not counterfoil.delete_schedule('org', 'f'), 'deleted once');
select pg_temp.raises($$ select counterfoil.pause_schedule('org', 'f') $$, 'RL002', 'schedule_not_found');

-- What is refused holds up no other.
select is(counterfoil.set_admission_limits('org', 'org', '{"maxQueued": 0}') ->> 'maxQueued', '0', 'an org without room');
select is(pg_temp.make('g'), 'created', 'a schedule of an org without room');
select is(
    (select c.outcome from counterfoil.create_schedule('org-2', 'h', pg_temp.cron(), 'UTC', pg_temp.template()) as c), 'created', 'one of another org'
);
select pg_temp.miss('g', '0 minutes');
select pg_temp.miss('h', '0 minutes');
update counterfoil.schedules set look_at = look_at - interval '1 second' where name = 'g';
select is(pg_temp.fire(), '{refused}', 'the first is refused');
select ok(s.last_error like 'RL007%' and s.look_at < clock_timestamp() + interval '2 seconds' and s.next_fire_at <= clock_timestamp(), 'is tried again when the limit said')
from counterfoil.schedules as s where s.name = 'g';
select is(pg_temp.fire(), '{admitted}', 'the other fires');

-- Bad schedules.
select pg_temp.raises($$ select counterfoil.create_schedule('org', 'x', pg_temp.cron('{"hours": [24]}'), 'UTC', pg_temp.template()) $$, 'RL001', 'p_cron.hours');
select pg_temp.raises($$ select counterfoil.create_schedule('org', 'x', pg_temp.cron(), 'Mars/Base', pg_temp.template()) $$, 'RL001', 'p_time_zone');
select pg_temp.raises($$ select counterfoil.create_schedule('org', 'x', pg_temp.cron(), 'UTC', pg_temp.template('{"priority": 10}')) $$, 'RL001', 'p_launch.priority');
select pg_temp.raises($$ select counterfoil.create_schedule('org', 'x', pg_temp.cron('{"days": [31], "months": [2]}'), 'UTC', pg_temp.template()) $$, 'RL001', 'p_cron');

select * from finish();
rollback;
