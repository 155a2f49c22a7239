-- SPEC 3: ids are text of 1 to 200 characters, whatever their bytes: no index of a run's way is too narrow for them.
begin;
\ir ../setup.psql
\ir setup.psql
select plan(13);

-- 200 characters of four bytes each, which do not compress.
create function pg_temp.wide(p_name text)
returns text language sql immutable parallel unsafe as $function$
  select string_agg(chr(131072 + abs(hashtext(p_name || i)) % 40000), '' order by i) from generate_series(1, 200) as i
$function$;
create function pg_temp.wide_launch(p_run text, p_more jsonb default '{}')
returns text language sql volatile parallel unsafe as $function$
  select a.outcome
  from counterfoil.admit_launch(pg_temp.launch(jsonb_build_object(
    'orgId', pg_temp.wide('org'), 'runId', pg_temp.wide(p_run), 'playId', pg_temp.wide('id'), 'playName', pg_temp.wide('play'),
    'releaseLane', pg_temp.wide('lane')
  ) || p_more)) as a
$function$;
create function pg_temp.wide_claim()
returns text language sql volatile parallel unsafe as $function$
  select min(c.run_id)
  from counterfoil.claim_attempts(pg_temp.wide('worker'), 1, 60, array[pg_temp.wide('play')], pg_temp.wide('lane')) as c
$function$;
create function pg_temp.wide_lease(p_run text)
returns text language sql stable parallel unsafe as $function$
  select a.lease_id from counterfoil.attempts as a where a.org_id = pg_temp.wide('org') and a.run_id = pg_temp.wide(p_run)
$function$;

select is(octet_length(pg_temp.wide('org')), 800, 'ids of eight hundred bytes');
select is(pg_temp.wide_launch('ready'), 'admitted', 'a launch is admitted');
select is(pg_temp.wide_claim(), pg_temp.wide('ready'), 'and claimed');
select is(
    (
        select s.outcome
        from counterfoil.suspend_attempt(
            pg_temp.wide('org'), pg_temp.wide('ready'), 1, pg_temp.wide_lease('ready'), null, pg_temp.wide('event'), null, pg_temp.wide('wait')
        ) as s
    ),
    'suspended', 'waits for an event'
);
select is(
    (
        select r.outcome
        from counterfoil.resume_run(
            pg_temp.wide('org'), pg_temp.wide('ready'), pg_temp.wide('event'), null, pg_temp.wide('signal')
        ) as r
    ),
    'resumed', 'is resumed'
);
select is(pg_temp.wide_claim(), pg_temp.wide('ready'), 'and claimed again');
select is(
    (
        select f.recorded
        from counterfoil.append_fact(
            pg_temp.wide('org'), pg_temp.wide('ready'), pg_temp.wide('fact'), 'run.progress', '{}'
        ) as f
    ),
    true, 'a fact is appended'
);
select is(
    (
        select c.outcome
        from counterfoil.complete_attempt(pg_temp.wide('org'), pg_temp.wide('ready'), 1, pg_temp.wide_lease('ready'), '{}') as c
    ),
    'completed', 'and it ends'
);
select is(
    (
        select array_agg(pg_temp.wide_launch(k.run, jsonb_build_object('concurrencyKey', pg_temp.wide('key'))))
        from unnest(array['first', 'second']) as k (run)
    ),
    array['admitted', 'admitted'], 'two of one key'
);
select is(
    (select c.outcome from counterfoil.cancel_run(pg_temp.wide('org'), pg_temp.wide('first'), null) as c), 'cancelled', 'one ends'
);
select is(pg_temp.wide_claim(), pg_temp.wide('second'), 'so the other is claimed');
select pg_temp.wide_launch('asleep', '{"availableAt": "2999-01-01T00:00:00Z"}');
update counterfoil.run_queue as q set ready_at = now() where q.run_id = pg_temp.wide('asleep');
select is(pg_temp.wide_claim(), pg_temp.wide('asleep'), 'and one that was asleep');
select is(pg_temp.wide_launch('child', jsonb_build_object('parentRunId', pg_temp.wide('asleep'))), 'admitted', 'and a child');

select * from finish();
rollback;
