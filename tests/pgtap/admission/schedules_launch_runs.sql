-- Issue 4: each firing of a schedule is admitted once, with a pin of its source; overlap and catch-up policies; pause.
begin;
\ir ../setup.psql
\ir setup.psql
select plan(83);

-- The hour that began two to three hours ago. Schedules here fire every minute of it, so that what is due lies in the past
-- and nothing else falls due for twenty hours, whatever the clock shows now.
create function pg_temp.hour()
returns timestamptz language sql stable parallel unsafe as $function$ select date_trunc('hour', now(), 'UTC') - interval '2 hours' $function$;
-- Every minute of the hour, parsed, with other fields on top.
create function pg_temp.cron(p_more jsonb default '{}')
returns jsonb language sql stable parallel unsafe as $function$
  select jsonb_build_object('expression', '* * * * *', 'minutes', (select jsonb_agg(m) from generate_series(0, 59) as m),
    'hours', jsonb_build_array(extract(hour from pg_temp.hour() at time zone 'Etc/GMT-1')), 'days', (select jsonb_agg(d) from generate_series(1, 31) as d),
    'months', (select jsonb_agg(m) from generate_series(1, 12) as m), 'weekdays', '[0, 1, 2, 3, 4, 5, 6]'::jsonb, 'nthWeekdays', '[]'::jsonb,
    'lastDay', false, 'lastWorkingDay', false, 'dayAndWeekday', true, 'everyRealHour', true) || p_more
$function$;
create function pg_temp.template(p_more jsonb default '{}')
returns jsonb language sql immutable parallel unsafe as $function$ select pg_temp.launch(p_more) - array['orgId', 'runId'] $function$;
create function pg_temp.make(
  p_name text, p_overlap text default 'skip', p_catch_up text default 'one', p_seconds integer default null, p_more jsonb default '{}',
  p_replace boolean default false
)
returns text language sql volatile parallel unsafe as $function$
  select c.outcome
  from counterfoil.create_schedule(
    'org', p_name, pg_temp.cron(), 'Etc/GMT-1', pg_temp.template(p_more), p_overlap, p_catch_up, p_seconds, p_replace
  ) as c
$function$;
-- The schedule is due since the given time before the last minute of the hour.
create function pg_temp.miss(p_name text, p_ago interval)
returns void language sql volatile parallel unsafe as $function$
  update counterfoil.schedules as s
  set next_fire_at = pg_temp.hour() + interval '59 minutes' - p_ago, look_at = clock_timestamp() - interval '1 second'
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
    '{"name": "a", "cron": "* * * * *", "timeZone": "Etc/GMT-1"}', 'its launch says where it comes from'
);
select ok(
    l.run_id = format('schedule:a:%s', to_char((l.launch #>> '{schedule,fireAt}')::timestamptz at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI"Z"'))
    and l.launch #>> '{schedule,scheduleId}' = s.schedule_id::text, 'and its id when it fired'
)
from counterfoil.launches as l cross join counterfoil.schedules as s;
select is((select s.next_fire_at > clock_timestamp() and s.look_at = s.next_fire_at from counterfoil.schedules as s), true, 'the next firing is ahead');

-- Overlap.
select pg_temp.miss('a', '0 minutes');
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
select is(pg_temp.fire(), '{admitted}', 'and starts when it has ended, at once');
select is((select s.buffered_at from counterfoil.schedules as s), null, 'once');
select is(pg_temp.runs_of('b'), 2::bigint, 'two runs came of it');
delete from counterfoil.schedules;
select is(pg_temp.make('c', 'allow', 'all'), 'created', 'a schedule whose runs may overlap');
select pg_temp.miss('c', '3 minutes');
select is(pg_temp.fire(), '{admitted,admitted,admitted,admitted}', 'allow and all: every missed firing is made up for');

-- Catch-up.
delete from counterfoil.schedules;
select is(
    pg_temp.make('d', 'allow', 'all', extract(epoch from now() - pg_temp.hour() - interval '57 minutes 30 seconds')::integer), 'created',
    'within a window'
);
select pg_temp.miss('d', '10 minutes');
select is(pg_temp.fire(), '{missed,admitted,admitted}', 'what is older than the window is left out');
delete from counterfoil.schedules;
select is(pg_temp.make('e'), 'created', 'one');
select pg_temp.miss('e', '400 days');
select is(pg_temp.fire(), '{missed,admitted}', 'one: only the latest is made up for');
select is(s.last_fire_at, pg_temp.hour() + interval '59 minutes', 'however much was missed') from counterfoil.schedules as s;
delete from counterfoil.schedules;
select is(pg_temp.make('f', 'allow', 'none'), 'created', 'none');
select pg_temp.miss('f', '2 hours');
select is(pg_temp.fire(), '{missed}', 'none: what was missed is missed');
update counterfoil.schedules set next_fire_at = clock_timestamp() - interval '30 seconds', look_at = clock_timestamp();
select is(pg_temp.fire(), '{admitted}', 'but for a firing that is less than a minute late');

-- Pause, resume, list, delete.
select is((select p.outcome from counterfoil.pause_schedule('org', 'f') as p), 'paused', 'a schedule is paused');
select is((select p.outcome from counterfoil.pause_schedule('org', 'f') as p), 'already_paused', 'again changes nothing');
select is((select s.next_fire_at from counterfoil.list_schedules('org') as s), null, 'it fires no more');
select is((select count(*) from counterfoil.schedule_fire_times('org', 'f', 3)), 3::bigint, 'it still says when it would');
select is((select r.outcome from counterfoil.resume_schedule('org', 'f') as r), 'active', 'resumed');
select ok(s.next_fire_at > clock_timestamp(), 'it goes on from now') from counterfoil.schedules as s;
select ok(s.schedule #>> '{launch,playName}' = 'audit' and not s.schedule -> 'launch' ? 'executorToken', 'its list shows no token') from counterfoil.list_schedules('org') as s;
select is(pg_temp.make('f2', p_more => '{"runtimeAuthority": "a", "vercelProtectionBypassToken": "b", "preloadedDbSessionUnwrapKey": "c"}'), 'created', 'one with credentials');
select is(
    s.schedule -> 'launch' ?| array['executorToken', 'runtimeAuthority', 'vercelProtectionBypassToken', 'preloadedDbSessionUnwrapKey'], false,
    'shows none of them'
)
from counterfoil.list_schedules('org', 'f') as s;
delete from counterfoil.schedules where name = 'f2';
select ok(counterfoil.delete_schedule('org', 'f') and not counterfoil.delete_schedule('org', 'f'), 'deleted once');
select pg_temp.raises($$ select counterfoil.pause_schedule('org', 'f') $$, 'RL002', 'schedule_not_found');

-- What is refused holds up no other.
select is(counterfoil.set_admission_limits('org', 'org', '{"maxQueued": 0}') ->> 'maxQueued', '0', 'an org without room');
select is(pg_temp.make('g'), 'created', 'a schedule of an org without room');
select is(
    (select c.outcome from counterfoil.create_schedule('org-2', 'h', pg_temp.cron(), 'Etc/GMT-1', pg_temp.template()) as c), 'created', 'one of another org'
);
select pg_temp.miss('g', '0 minutes');
select pg_temp.miss('h', '0 minutes');
update counterfoil.schedules set look_at = look_at - interval '1 second' where name = 'g';
select is(pg_temp.make('g2'), 'created', 'and another one');
select pg_temp.miss('g2', '0 minutes');
select is(pg_temp.fire(), '{refused,refused,admitted}', 'those are refused, the other fires');
select ok(s.last_error like 'RL007%' and s.look_at between now() + interval '50 seconds' and now() + interval '70 seconds' and s.next_fire_at <= clock_timestamp(), 'is tried again when the limit said')
from counterfoil.schedules as s where s.name = 'g';
select is((select count(*) from counterfoil.schedules as s where s.look_at <= clock_timestamp()), 0::bigint, 'none is left to look at');
-- Places for some of them.
select is(counterfoil.set_admission_limits('org', 'org', jsonb_build_object('maxQueued', count(*) + 1)) ->> 'maxActive', null, 'room for one')
from counterfoil.runs as r where r.org_id = 'org' and r.status = 'queued';
update counterfoil.schedules set look_at = clock_timestamp() where org_id = 'org';
select is(pg_temp.fire(), '{admitted}', 'one fires');
select is(pg_temp.fire(), '{refused}', 'the other does not');
-- Room for each of them, but not for all: each org has its turn, and under the installation's limit those due the longest.
delete from counterfoil.schedules;
select is(counterfoil.set_admission_limits('org', 'org', jsonb_build_object('maxQueued', count(*) + 2)) ->> 'maxActive', null, 'room for two')
from counterfoil.runs as r where r.org_id = 'org' and r.status = 'queued';
select pg_temp.make('j' || i) from generate_series(1, 5) as i;
select c.outcome from counterfoil.create_schedule('org-2', 'j6', pg_temp.cron(), 'Etc/GMT-1', pg_temp.template()) as c;
select c.outcome from counterfoil.create_schedule('org-3', 'j7', pg_temp.cron(), 'Etc/GMT-1', pg_temp.template()) as c;
select pg_temp.miss(s.name, '0 minutes') from counterfoil.schedules as s;
update counterfoil.schedules as s set look_at = s.look_at + make_interval(secs => substr(s.name, 2)::integer * 0.01);
select is(
    (select array_agg(f.name || ' ' || f.outcome) from counterfoil.fire_due_schedules(100) as f),
    array['j1 admitted', 'j6 admitted', 'j7 admitted'], 'five of one org do not hold up those of others'
);
select is(pg_temp.fire(), '{admitted}', 'the second of them fires next');
select is(pg_temp.fire(), '{refused,refused,refused}', 'then there is no room for the others');
select ok(bool_and(s.last_outcome = 'refused' and s.last_error like 'RL007%'), 'and say so') from counterfoil.schedules as s where s.name in ('j3', 'j4', 'j5');
delete from counterfoil.schedules;
select is(
    counterfoil.set_admission_limits(null, 'installation', jsonb_build_object('maxQueued', count(*) + 2)) ->> 'maxActive', null,
    'room for two in all'
)
from counterfoil.runs as r where r.status = 'queued';
select c.outcome
from generate_series(1, 3) as i
cross join lateral counterfoil.create_schedule('org-k' || i, 'k' || i, pg_temp.cron(), 'Etc/GMT-1', pg_temp.template()) as c;
select pg_temp.miss(s.name, '0 minutes') from counterfoil.schedules as s;
update counterfoil.schedules as s set look_at = s.look_at + make_interval(secs => substr(s.name, 2)::integer * 0.01);
select is((select array_agg(f.name) from counterfoil.fire_due_schedules(100) as f), array['k1'], 'the longest due fires');
select is((select array_agg(f.name) from counterfoil.fire_due_schedules(100) as f), array['k2'], 'then the next');
select is(pg_temp.fire(), '{refused}', 'then there is no room');
select is(counterfoil.set_admission_limits(null, 'installation', '{"maxQueued": null}') ->> 'maxQueued', null, 'there is again');
select is(counterfoil.set_admission_limits('org', 'org', '{"maxQueued": null}') ->> 'maxQueued', null, 'also in the org');

-- One that was found to have room, and then has none: others were faster.
delete from counterfoil.schedules;
create temporary sequence inserts;
create function pg_temp.fail_at_first_and_third()
returns trigger language plpgsql volatile parallel unsafe as $function$
begin
  if nextval('pg_temp.inserts') in (1, 3) then
    raise 'no luck';
  end if;
  return new;
end
$function$;
create trigger fails before insert on counterfoil.runs for each row execute function pg_temp.fail_at_first_and_third();
select is(pg_temp.make('l'), 'created', 'a schedule');
select pg_temp.miss('l', '0 minutes');
select is(pg_temp.fire(), '{refused}', 'is refused in the end');
select is(
    (select s.last_outcome || ' ' || s.last_error from counterfoil.schedules as s), 'refused P0001: no luck', 'and says why'
);
drop trigger fails on counterfoil.runs;
delete from counterfoil.schedules;
select is(counterfoil.set_admission_limits('org', 'org', '{"maxQueued": 0}') ->> 'maxQueued', '0', 'no room again');

-- Other contents.
delete from counterfoil.schedules;
select is(pg_temp.make('i', 'buffer', 'all'), 'created', 'a schedule');
select pg_temp.miss('i', '2 minutes');
select is(pg_temp.fire(), '{refused}', 'that has something due');
select is(pg_temp.make('i', 'buffer', 'all', null, '{"playName": "other"}', true), 'replaced', 'is given another play');
select is(pg_temp.make('i', 'buffer', 'all', null, '{"playName": "other"}', true), 'replayed', 'given it again it is the same');
select is(counterfoil.set_admission_limits('org', 'org', '{"maxQueued": null}') ->> 'maxQueued', null, 'there is room again');
select is(pg_temp.fire(), '{admitted,buffered,skipped}', 'what was due still fires');
select is(
    (select r.play_name from counterfoil.runs as r inner join counterfoil.schedules as s on r.run_id = s.last_run_id), 'other', 'as the other play'
);
select is(pg_temp.make('i', 'skip', 'all', null, '{}', true), 'replaced', 'without a buffer');
select ok(s.buffered_at is null and s.look_at > clock_timestamp(), 'nothing waits any more') from counterfoil.schedules as s;
select is((select p.outcome from counterfoil.pause_schedule('org', 'i') as p), 'paused', 'paused');
select is(pg_temp.make('i', 'allow', 'all', null, '{}', true), 'replaced', 'it can be replaced');
select ok(s.paused_at is not null and s.next_fire_at is null and s.look_at is null, 'and stays paused') from counterfoil.schedules as s;
select is(
    (select count(*) from counterfoil.operator_audit as a where a.action = 'replace_schedule' and a.details ? 'changed'), 3::bigint,
    'each change is on record'
);

-- Expressions that differ in what their text does not say.
select pg_temp.raises(
    $$ select counterfoil.create_schedule('org', 'i', pg_temp.cron('{"lastDay": true}'), 'Etc/GMT-1', pg_temp.template(), 'allow', 'all') $$, 'RL003', 'p_cron'
);

-- Bad schedules.
select pg_temp.raises(
    format(
        $q$ select counterfoil.create_schedule('org', 'x', pg_temp.cron('{"expression": "%s"}'), 'UTC', pg_temp.template(jsonb_build_object('input', repeat('x', %s)))) $q$,
        repeat('* ', 490), 1048576 - 1000 - octet_length(pg_temp.template('{"input": ""}')::text)
    ),
    'RL008', 'p_launch', 'a template that leaves no room for a long expression'
);
select pg_temp.raises($$ select counterfoil.create_schedule('org', 'x', pg_temp.cron('{"hours": [24]}'), 'UTC', pg_temp.template()) $$, 'RL001', 'p_cron.hours');
select pg_temp.raises($$ select counterfoil.create_schedule('org', 'x', pg_temp.cron(), 'Mars/Base', pg_temp.template()) $$, 'RL001', 'p_time_zone');
select pg_temp.raises($$ select counterfoil.create_schedule('org', 'x', pg_temp.cron(), 'UTC', pg_temp.template('{"priority": 10}')) $$, 'RL001', 'p_launch.priority');
select pg_temp.raises($$ select counterfoil.create_schedule('org', 'x', pg_temp.cron('{"days": [31], "months": [2]}'), 'UTC', pg_temp.template()) $$, 'RL001', 'p_cron');

select * from finish();
rollback;
