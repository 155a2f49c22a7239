-- Issue 4: one question a poll: it says when there will be work, recovers runs, fires schedules, and keeps the asker known.
begin;
\ir ../setup.psql
\ir setup.psql
select plan(24);

create function pg_temp.look(p_plays text[] default null, p_lane text default 'default')
returns timestamptz language sql volatile parallel unsafe as $function$
  select counterfoil.look_for_work('worker', p_plays, p_lane, 10, 'listener')
$function$;

select is(pg_temp.look(), null, 'nothing is known');
select is(pg_temp.admit('a', '{"availableAt": "2036-01-01T00:00:00Z"}'), 'admitted', 'a run for later');
select is(pg_temp.look(), '2036-01-01T00:00:00Z'::timestamptz, 'then');
select is(pg_temp.look(array['other']), null, 'not for one who cannot execute it');
select is(pg_temp.admit('b'), 'admitted', 'a run for now');
select ok(pg_temp.look() <= clock_timestamp(), 'now');

select is(pg_temp.claim(), array['b'], 'it is claimed');
select pg_temp.lapse('b');
select ok(pg_temp.look() <= clock_timestamp(), 'its worker is lost: it is due again');
select is(pg_temp.status('b'), 'waiting', 'since it was recovered');
select is(pg_temp.claim(), array['b'], 'and claimed again');

insert into counterfoil.schedules (
    org_id, name, schedule_id, cron, minutes, hours, days, last_day, last_working_day, months, weekdays, nth_weekdays, day_and_weekday,
    every_real_hour, time_zone, launch, overlap, catch_up, created_at, next_fire_at, look_at
)
select
    'org', s.name, gen_random_uuid(), '0 0 1 1 *', '{0}', '{0}', '{1}', false, false, '{1}', '{0, 1, 2, 3, 4, 5, 6}', '{}', true, false, 'UTC',
    pg_temp.launch() - array['orgId', 'runId'], 'skip', 'one', clock_timestamp(), s.at, s.at
from (values ('due', clock_timestamp() - interval '1 second'), ('next', clock_timestamp() + interval '1 hour')) as s (name, at);
select ok(pg_temp.look() <= clock_timestamp(), 'a schedule is due: it fires, and its run is there to be claimed');
select is(cardinality(pg_temp.claim()), 1, 'by whoever comes');
select is(pg_temp.look(), s.look_at, 'the next schedule is looked at when it is due')
from counterfoil.schedules as s where s.name = 'next';

update counterfoil.workers set last_seen_at = clock_timestamp() - interval '1 hour';
select ok(counterfoil.start_listening('listener', 'attempts', 20) is not null, 'the worker is registered');
select ok(pg_temp.look() is not null, 'and asks again');
select is(
    (select w.last_seen_at > clock_timestamp() - interval '1 minute' from counterfoil.workers as w)
    and (select l.asleep_until > clock_timestamp() + interval '50 seconds' from counterfoil.listeners as l),
    true, 'the worker is known to live, and its registration does not run out'
);

update counterfoil.listeners set asleep_until = clock_timestamp() - interval '1 hour';
select pg_temp.look();
select ok(l.asleep_until > clock_timestamp() + interval '50 seconds', 'one that was stopped for a while is registered again') from counterfoil.listeners as l;

-- Runs that no limit lets start are not due.
delete from counterfoil.schedules;
delete from counterfoil.run_queue;
select is(counterfoil.set_admission_limits('org', 'org', '{"maxActive": 1}') ->> 'maxActive', '1', 'one at a time');
select is(pg_temp.admit('c'), 'admitted', 'a run');
select is(pg_temp.look(), null, 'while others of its org run, it is not due');
select is(pg_temp.admit('d', '{"orgId": "org-2"}'), 'admitted', 'a run of another org');
select ok(pg_temp.look() <= clock_timestamp(), 'is');
select is(counterfoil.set_admission_limits(null, 'installation', '{"maxActive": 1}') ->> 'maxActive', '1', 'one at a time in all');
select is(pg_temp.look(), null, 'then it is not either');

select * from finish();
rollback;
