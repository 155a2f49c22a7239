-- SPEC 4: the run and its run.created in one transaction; the same launch again is a replay, another one a conflict.
begin;
\ir ../setup.psql
\ir setup.psql
select plan(21);

select results_eq(
    $$ select * from counterfoil.admit_launch(pg_temp.launch('{"input": {"n": 1.50}, "extra": [1], "priority": 3}')) $$,
    $$ values ('org', 'run', 'admitted', 'queued') $$,
    'a new launch is admitted'
);
select is(
    (select array[o.event_type, o.payload::text] from counterfoil.outbox as o where o.run_id = 'run'),
    array['run.created', '{"playId": "play-1", "playName": "audit", "rootRunId": "run"}'],
    'its fact is run.created'
);
select is(
    (select l.launch from counterfoil.launches as l where l.run_id = 'run'),
    pg_temp.launch('{"input": {"n": 1.50}, "extra": [1], "priority": 3}'),
    'the launch is kept as given, unknown fields included'
);
select is(
    (select array(select jsonb_object_keys(l.dispatch_authority) order by 1) from counterfoil.launches as l),
    array[
        'baseUrl', 'executorToken', 'orgId', 'playId', 'playName', 'runId', 'runtimeApiBaseUrl', 'runtimeAuthority',
        'runtimeTokenOrigin', 'vercelProtectionBypassToken'
    ],
    'the dispatch authority is the ten fields and no more'
);
select is(
    (select array[q.state, q.priority::text, q.release_lane] from counterfoil.run_queue as q),
    array['ready', '3', 'default'], 'the run is in the queue'
);
select is(
    (
        select array[r.max_attempts, o.seq, r.attempt]
        from counterfoil.runs as r
        inner join counterfoil.outbox as o using (org_id, run_id)
    ),
    array[3, 1, 0]::bigint[],
    'it has the default number of attempts and one fact'
);

select results_eq(
    $$ select * from counterfoil.admit_launch(pg_temp.launch('{"priority": 3, "extra": [1.0], "input": {"n": 15e-1}}')) $$,
    $$ values ('org', 'run', 'replayed', 'queued') $$,
    'field order and the spelling of numbers do not matter'
);
select is(pg_temp.admit('run', l.more), 'replayed', 'volatile: ' || l.more::text)
from (
    values
        ('{"launchIdentityDigest": "x"}'::jsonb), ('{"runtimeLogIdentity": "origin"}'), ('{"executorToken": "other"}'),
        ('{"inputFileId": "f"}'), ('{"preloadedDbSessionUnwrapKey": "k"}')
) as v (volatile)
cross join lateral (select '{"input": {"n": 1.5}, "extra": [1], "priority": 3}'::jsonb || v.volatile as more) as l;
select is(
    (select array[count(*), (select count(*) from counterfoil.outbox)] from counterfoil.runs), array[1, 1]::bigint[],
    'replays write nothing'
);

select pg_temp.raises(
    $$ select pg_temp.admit('run', '{"input": {"n": 2}, "extra": [1], "priority": 3, "playId": "p2", "executorToken": "x"}') $$,
    'RL003', 'input, playId', 'a conflict names the top-level fields that differ, not the volatile ones'
);
select pg_temp.raises(
    $$ select pg_temp.admit('run', '{"input": {"n": 1.5}, "priority": 3}') $$, 'RL003', 'extra',
    'a field that is gone differs'
);
select unalike(
    (select r.message || r.detail || r.hint from pg_temp.raised(
        $$ select pg_temp.admit('run', '{"input": "sesame", "executorToken": "hush"}') $$) as r),
    '%sesame%', 'a conflict does not say what is in the fields'
);

select is(
    (select a.status from counterfoil.admit_launch(pg_temp.launch('{"orgId": "org-2"}')) as a), 'queued',
    'the same run id in another org is another run'
);
select is(
    (
        select a.status
        from counterfoil.cancel_run('org-2', 'run', null) as c
        cross join lateral counterfoil.admit_launch(pg_temp.launch('{"orgId": "org-2"}')) as a
        where c.outcome = 'cancelled'
    ),
    'cancelled', 'a replay says the run''s present status'
);
select is(
    pg_temp.admit('later',
        '{"availableAt": "2036-01-31T10:00:00.5+02:00", "deadlineAt": "2036-02-29T00:00:00Z", "maxAttempts": 7,
          "attemptTimeoutSeconds": 60, "releaseLane": "blue"}'),
    'admitted', 'a launch for later is admitted'
);
select is(
    (
        select array[
            r.available_at::text, r.deadline_at::text, r.max_attempts::text, r.attempt_timeout_seconds::text,
            r.release_lane, q.state
        ]
        from counterfoil.runs as r
        inner join counterfoil.run_queue as q on q.run_id = r.run_id
        where r.run_id = 'later'
    ),
    array[
        '2036-01-31T08:00:00.5Z'::timestamptz::text, '2036-02-29T00:00:00Z'::timestamptz::text, '7', '60', 'blue',
        'sleeping'
    ],
    'times, attempts, time-out and lane are taken from the launch, and a run for later sleeps'
);
select is(
    (select count(*) from counterfoil.admission_counters), 0::bigint, 'without limits nothing is counted'
);

select * from finish();
rollback;
