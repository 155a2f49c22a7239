-- SPEC 4: one row per launch in the order given, all or none, across orgs.
begin;
\ir ../setup.psql
\ir setup.psql
select plan(17);

select is(pg_temp.admit('old'), 'admitted', 'one run is there before');

select results_eq(
    $$
    select *
    from counterfoil.admit_launches(jsonb_build_array(
        pg_temp.launch('{"runId": "z"}'),
        pg_temp.launch('{"runId": "old", "executorToken": "new"}'),
        pg_temp.launch('{"runId": "a", "orgId": "org-2"}'),
        pg_temp.launch('{"runId": "z", "inputFileId": "f"}'),
        pg_temp.launch('{"runId": "a"}')
    ))
    $$,
    $$
    values
        ('org', 'z', 'admitted', 'queued'), ('org', 'old', 'replayed', 'queued'), ('org-2', 'a', 'admitted', 'queued'),
        ('org', 'z', 'replayed', 'queued'), ('org', 'a', 'admitted', 'queued')
    $$,
    'outcomes come in the order given; a repeat within the call is a replay'
);
select results_eq(
    $$
    select a.run_id, a.outcome
    from counterfoil.admit_launches(jsonb_build_array(
        pg_temp.launch('{"runId": "old"}'), pg_temp.launch('{"runId": "z"}'), pg_temp.launch('{"runId": "y", "orgId": "org-3"}')
    )) as a
    $$,
    $$ values ('old', 'replayed'), ('z', 'replayed'), ('y', 'admitted') $$, 'replays before a new one'
);
select is(
    (select array_agg(o.org_id || '/' || o.run_id || '/' || o.event_type order by o.org_id, o.run_id) from counterfoil.outbox as o),
    array['org/a/run.created', 'org/old/run.created', 'org/z/run.created', 'org-2/a/run.created', 'org-3/y/run.created'],
    'each new run has one run.created'
);
select is(
    (select array_agg(l.org_id || '/' || l.run_id || '/' || l.head_seq || '/' || l.tail_seq || '/' || l.priority order by 1)
        from counterfoil.lanes as l
        where l.org_id = 'org-2'),
    array['org-2/a/1/1/0'], 'and waits for delivery as an admission'
);
select is((select count(*) from counterfoil.launches), 5::bigint, 'and has its launch');
select is_empty($$ select * from counterfoil.admit_launches('[]') $$, 'no launches, no rows');

select pg_temp.raises(
    format('select counterfoil.admit_launches(%L)', jsonb_build_array(
        pg_temp.launch('{"runId": "n1"}'), pg_temp.launch('{"runId": "n2"}'), pg_temp.launch('{"runId": "n3"}') - 'playName'
    )),
    'RL001', 'p_launches[2].playName', 'the bad launch is named by its place'
);
select pg_temp.raises(
    format('select counterfoil.admit_launches(%L)', jsonb_build_array(pg_temp.launch('{"runId": "n1"}'), 'null'::jsonb)),
    'RL001', 'p_launches[1]', 'a launch that is no object too'
);
select pg_temp.raises(
    format('select counterfoil.admit_launches(%L)', jsonb_build_array(
        pg_temp.launch('{"runId": "n1"}'), pg_temp.launch('{"runId": "old", "input": 1}')
    )),
    'RL003', 'input', 'a conflict with a run that exists refuses all'
);
select pg_temp.raises(
    format('select counterfoil.admit_launches(%L)', jsonb_build_array(
        pg_temp.launch('{"runId": "n1", "input": 1}'), pg_temp.launch('{"runId": "n1", "input": 2, "playId": "q"}')
    )),
    'RL003', 'input, playId', 'so does one within the call'
);
select pg_temp.raises(
    format('select counterfoil.admit_launches(%L)', jsonb_build_array(
        pg_temp.launch('{"runId": "n1"}'), pg_temp.launch('{"runId": "n2", "parentRunId": "nobody"}')
    )),
    'RL002', 'parent_run_not_found', 'so does a parent that nobody knows'
);
update counterfoil.settings as s set value = '2' where s.name = 'launch_batch_max';
select pg_temp.raises(
    format('select counterfoil.admit_launches(%L)', jsonb_build_array(
        pg_temp.launch('{"runId": "n1"}'), pg_temp.launch('{"runId": "n2"}'), pg_temp.launch('{"runId": "n3"}')
    )),
    'RL001', 'p_launches', 'so does one launch more than a call may hold'
);
select is((select count(*) from counterfoil.runs as r where r.run_id like 'n%'), 0::bigint, 'refused calls left nothing');
update counterfoil.settings as s set value = null where s.name = 'launch_batch_max';

select is(
    (
        select count(distinct a.run_id)
        from counterfoil.admit_launches((
            select jsonb_agg(pg_temp.launch(jsonb_build_object('runId', 'bulk-' || i, 'orgId', 'bulk-' || i % 7)))
            from generate_series(1, 10000) as i
        )) as a
        where a.outcome = 'admitted'
    ),
    10000::bigint, 'ten thousand launches of seven orgs are one call'
);
select is(
    (
        select array[
            count(*), count(*) filter (where o.seq = 1), count(*) filter (where q.state = 'ready'),
            count(*) filter (where l.head_seq = 1)
        ]
        from counterfoil.runs as r
        left join counterfoil.outbox as o using (org_id, run_id)
        left join counterfoil.run_queue as q using (org_id, run_id)
        left join counterfoil.lanes as l using (org_id, run_id)
        where r.run_id like 'bulk-%'
    ),
    array[10000, 10000, 10000, 10000]::bigint[], 'each whole'
);
select is(
    (
        select count(*)
        from counterfoil.admit_launches((
            select jsonb_agg(pg_temp.launch(jsonb_build_object('runId', 'bulk-' || i, 'orgId', 'bulk-' || i % 7)))
            from generate_series(1, 10000) as i
        )) as a
        where a.outcome = 'replayed'
    ),
    10000::bigint, 'and replayed as one call'
);

select * from finish();
rollback;
