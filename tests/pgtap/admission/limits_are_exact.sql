-- SPEC 4: an org's limits (RL007) and the installation's (RL006), to the last place.
begin;
\ir ../setup.psql
\ir ../attempts/setup.psql
select plan(65);

create function pg_temp.limits(p_org text, p_scope text, p_limits jsonb)
returns void language sql volatile parallel unsafe as $function$
  insert into counterfoil.admission_limits (
    org_id, scope, max_queued, max_active, launches_per_minute, max_per_concurrency_key, changed_at
  )
  select p_org, p_scope, l.max_queued, l.max_active, l.launches_per_minute, l.max_per_concurrency_key, now()
  from jsonb_to_record(p_limits) as l (
    max_queued bigint, max_active bigint, launches_per_minute bigint, max_per_concurrency_key bigint
  )
  on conflict on constraint admission_limits_pkey do update
  set max_queued = excluded.max_queued, max_active = excluded.max_active,
      launches_per_minute = excluded.launches_per_minute, max_per_concurrency_key = excluded.max_per_concurrency_key;
  select counterfoil.recount_admission(p_org, p_scope);
$function$;
create function pg_temp.bulk(p_prefix text, p_count integer, p_org text default 'org')
returns bigint language sql volatile parallel unsafe as $function$
  select count(*)
  from counterfoil.admit_launches((
    select jsonb_agg(pg_temp.launch(jsonb_build_object('runId', p_prefix || i, 'orgId', p_org)))
    from generate_series(1, p_count) as i
  )) as a
  where a.outcome = 'admitted'
$function$;
create function pg_temp.counted(p_org text)
returns bigint[] language sql stable parallel unsafe as $function$
  select array[sum(c.queued), sum(c.active)]::bigint[] from counterfoil.admission_counters as c where c.org_id = p_org
$function$;
-- One more test: a launch is refused under the limit, with a retry-after in between.
create function pg_temp.full_up(p_sql text, p_state text, p_from integer, p_to integer, p_name text, p_limit text default 'maxQueued')
returns text language sql volatile parallel unsafe as $function$
  select ok(
    (r.state, r.detail::jsonb ->> 'limit') = (p_state, p_limit) and (r.detail::jsonb ->> 'retryAfterMs')::integer between p_from and p_to,
    p_name || ': ' || r.detail
  )
  from pg_temp.raised(p_sql) as r
$function$;
-- Places came free so many a minute for the given time, through two of the rows, until a while ago.
create function pg_temp.freed(p_org text, p_a_minute integer, p_for interval, p_ago interval)
returns void language sql volatile parallel unsafe as $function$
  update counterfoil.admission_counters as c
  set
    counted_since = clock_timestamp() - p_for - p_ago,
    freed_at = case when c.shard < 2 then clock_timestamp() - p_ago else clock_timestamp() - p_for - p_ago end,
    freed_lately = case when c.shard < 2 then p_a_minute / 2.0 * (1 - exp(-extract(epoch from p_for) / 60)) else 0 end
  where c.org_id = p_org
$function$;

-- Most queued runs of an org.
select is(pg_temp.bulk('before-', 3), 3::bigint, 'three runs before there was a limit');
select pg_temp.limits('org', 'org', '{"max_queued": 10}');
select is(pg_temp.counted('org'), array[3, 0]::bigint[], 'a new limit counts what is there');
select is(pg_temp.bulk('a-', 6), 6::bigint, 'six more fit');
select is(pg_temp.admit('tenth'), 'admitted', 'so does the tenth');
select pg_temp.full_up($$ select pg_temp.admit('eleventh') $$, 'RL007', 1000, 60000, 'the eleventh does not');
select throws_like(
    $$ select pg_temp.admit('eleventh') $$, '%no room for 1 more launch under maxQueued, which is 10.', 'and is told by the documented name'
);
select is(pg_temp.admit('tenth'), 'replayed', 'a replay takes no place');
select is(pg_temp.admit('elsewhere', '{"orgId": "org-2"}'), 'admitted', 'another org has no part in it');
select is(cardinality(pg_temp.claim(2)), 2, 'a claim makes room');
select is(pg_temp.counted('org'), array[9, 1]::bigint[], 'one run of each org started: one place');
select pg_temp.full_up($$ select pg_temp.bulk('b-', 2) $$, 'RL007', 1000, 60000, 'two are all or none');
select is(pg_temp.bulk('b-', 1), 1::bigint, 'one fits');
select is((select c.outcome from counterfoil.cancel_run('org', 'b-1', null) as c), 'cancelled', 'a cancelled run');
select is(pg_temp.admit('again'), 'admitted', 'gives its place back');
select pg_temp.full_up($$ select pg_temp.admit('more') $$, 'RL007', 1000, 60000, 'it is full again');

-- Far from the limit nobody takes more than a row, and the sum stays exact.
select pg_temp.limits('org', 'org', '{"max_queued": 3000}');
select is(pg_temp.bulk('c-' || i || '-', 100), 100::bigint, 'a hundred, time ' || i) from generate_series(1, 3) as i;
select is(pg_temp.admit('d-' || i), 'admitted', 'single ' || i) from generate_series(1, 5) as i;
select is(pg_temp.counted('org'), array[315, 1]::bigint[], 'all are counted');
select is(pg_temp.bulk('e-', 2685), 2685::bigint, 'the rest of the places in one call');
select pg_temp.full_up($$ select pg_temp.admit('f') $$, 'RL007', 1000, 60000, 'then it is full');
select is(pg_temp.counted('org'), array[3000, 1]::bigint[], 'exactly');

-- When to try again: what is missing, at the rate at which places came free; between a second and a minute.
select pg_temp.freed('org', 30, '1 hour', '0');
select pg_temp.full_up($$ select pg_temp.admit('f') $$, 'RL007', 2000, 3000, 'thirty a minute: two seconds for one');
select pg_temp.full_up($$ select pg_temp.bulk('f', 10) $$, 'RL007', 20000, 24000, 'ten times as long for ten');
select pg_temp.freed('org', 30, '5 seconds', '0');
select pg_temp.full_up($$ select pg_temp.bulk('f', 10) $$, 'RL007', 20000, 24000, 'as soon as there is something to go by');
select pg_temp.freed('org', 6000, '1 hour', '0');
select pg_temp.full_up($$ select pg_temp.admit('f') $$, 'RL007', 1000, 1000, 'a second at least');
select pg_temp.freed('org', 30, '1 hour', '40 seconds');
select pg_temp.full_up($$ select pg_temp.admit('f') $$, 'RL007', 40000, 45000, 'where places have stopped coming, the time since the last');
select pg_temp.freed('org', 30, '1 hour', '1 day');
select pg_temp.full_up($$ select pg_temp.admit('f') $$, 'RL007', 60000, 60000, 'a minute at most');
select pg_temp.freed('org', 30, '1 hour', '-1 day');
select pg_temp.full_up($$ select pg_temp.admit('f') $$, 'RL007', 1000, 60000, 'a clock that was set back spoils nothing');
select pg_temp.freed('org', 0, '0', '4 seconds');
select pg_temp.full_up($$ select pg_temp.admit('f') $$, 'RL007', 4000, 8000, 'where none has come free yet, as long as they were counted');
select pg_temp.freed('org', 0, '0', '0');
select is(cardinality(pg_temp.claim(1, null, 'default', 'eager')), 1, 'a claim');
select is(pg_temp.admit('f'), 'admitted', 'makes room');
select ok(freed.places between 0.9 and 1, 'and is remembered: ' || freed.places)
from (select sum(c.freed_lately) as places from counterfoil.admission_counters as c where c.org_id = 'org') as freed;
select pg_temp.full_up($$ select pg_temp.admit('g') $$, 'RL007', 1000, 10000, 'as the rate');
select pg_temp.full_up($$ select pg_temp.bulk('h', 3001) $$, 'RL007', 60000, 60000, 'what can never fit is told so for a minute');
select pg_temp.freed('org', 0, '0', '5 seconds');
select is((select c.outcome from counterfoil.cancel_run('org', 'f', null) as c), 'cancelled', 'so does a cancelled run');
select is(pg_temp.admit('g'), 'admitted', 'make room');
select pg_temp.full_up($$ select pg_temp.admit('h') $$, 'RL007', 1000, 10000, 'and is remembered');

-- Launches per minute: the next minute is open.
select pg_temp.limits('rate', 'org', '{"launches_per_minute": 5}');
select pg_temp.full_up($$ select pg_temp.bulk('m-', 6, 'rate') $$, 'RL007', 60000, 60000, 'six at once never fit', 'launchesPerMinute');
select throws_like(
    $$ select pg_temp.bulk('m-', 6, 'rate') $$, '%no room for 6 more launches under launchesPerMinute, which is 5.', 'and the message says why'
);
select is(pg_temp.bulk('m-', 5, 'rate'), 5::bigint, 'five launches in this minute');
-- The end of the minute may fall in between here, so the window is the next one.
update counterfoil.admission_counters as c set window_start = c.window_start + interval '1 minute' where c.org_id = 'rate';
select pg_temp.full_up($$ select pg_temp.bulk('m6-', 1, 'rate') $$, 'RL007', 1, 60000, 'the sixth is refused until the minute is over', 'launchesPerMinute');
select ok(
    (60000 + (r.detail::jsonb ->> 'retryAfterMs')::numeric - (60000 - extract(milliseconds from clock_timestamp()))) % 60000 < 1000,
    'to the millisecond, but for the time it takes to look'
)
from pg_temp.raised($$ select pg_temp.bulk('m6-', 1, 'rate') $$) as r;
select pg_temp.limits('rate', 'org', '{"launches_per_minute": 5, "max_queued": 5}');
update counterfoil.admission_counters as c
set window_start = date_trunc('minute', clock_timestamp(), 'UTC') + interval '1 minute', window_launches = counterfoil.counter_share(5, c.shard)
where c.org_id = 'rate';
select pg_temp.freed('rate', 6000, '1 hour', '0');
select ok(
    (60000 + greatest((r.detail::jsonb ->> 'retryAfterMs')::numeric, 1000) - (60000 - extract(milliseconds from clock_timestamp()))) % 60000 < 1000,
    'where the queue is full too, the later of the two: ' || r.detail
)
from pg_temp.raised($$ select pg_temp.bulk('m6-', 1, 'rate') $$) as r;
select pg_temp.limits('rate', 'org', '{"launches_per_minute": 5}');
update counterfoil.admission_counters as c set window_start = c.window_start - interval '2 minutes' where c.org_id = 'rate';
select is(pg_temp.bulk('n-', 5, 'rate'), 5::bigint, 'a minute later there are five more');
update counterfoil.admission_counters as c set window_start = c.window_start + interval '1 day' where c.org_id = 'rate';
select is(pg_temp.bulk('p-', 5, 'rate'), 5::bigint, 'so are there where the clock was set back');

-- The default row, and an org's own value over it, field by field.
select pg_temp.limits('', 'default', '{"max_queued": 2, "max_active": 1}');
select is(pg_temp.counted('rate'), array[15, 0]::bigint[], 'a default limit counts every org');
select pg_temp.full_up($$ select pg_temp.bulk('o-', 3, 'new') $$, 'RL007', 1000, 60000, 'it is full again');
select is(pg_temp.bulk('o-', 2, 'new'), 2::bigint, 'an org without limits of its own has the default''s');
select pg_temp.full_up($$ select pg_temp.admit('i') $$, 'RL007', 1000, 60000, 'its own limit of 3000 counts for org');
select pg_temp.limits('new', 'org', '{"max_queued": 4}');
select is(pg_temp.bulk('p-', 2, 'new'), 2::bigint, 'an own limit wins');
select is(
    (select array_agg(c.run_id order by c.run_id) from unnest(pg_temp.claim(10, array['audit'])) as c (run_id)), array['m-1', 'o-1'],
    'max_active of the default holds: one run of each org that has none yet'
);
select is(pg_temp.counted('new'), array[3, 1]::bigint[], 'one active run of the org');
select is(cardinality(pg_temp.claim(10)), 0, 'and no more');
select ok(pg_temp.complete('o-1') ->> 'outcome' = 'completed', 'until it ends');
select is(pg_temp.claim(10), array['o-2'], 'then the next starts');

-- The installation: RL006, over all orgs.
select pg_temp.limits('', 'default', '{}');
select is(pg_temp.counted('org-2'), array[null, null]::bigint[], 'without limits no counters are kept');
delete from counterfoil.admission_limits;
select pg_temp.limits('', 'installation', '{"max_queued": 3020, "max_active": 5}');
select is(
    pg_temp.counted(''),
    (
        select array[count(*) filter (where r.status = 'queued'), count(*) filter (where r.status = 'running')]
        from counterfoil.runs as r
    ),
    'the installation counts all orgs together'
);
select pg_temp.full_up($$ select pg_temp.bulk('q-', 30, 'any') $$, 'RL006', 1000, 60000, 'RL006 over the installation''s');
select ok(pg_temp.bulk('r-', (3020 - (pg_temp.counted(''))[1])::integer, 'any') > 0, 'up to it launches fit');

select * from finish();
rollback;
