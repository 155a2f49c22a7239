-- SPEC 4: parent and root runs, also within one call, whatever the order.
begin;
\ir ../setup.psql
\ir setup.psql
select plan(8);

select is(pg_temp.admit('top'), 'admitted', 'a run without a parent');
select is(pg_temp.admit('child', '{"parentRunId": "top"}'), 'admitted', 'its child');
select is(pg_temp.admit('grandchild', '{"parentRunId": "child"}'), 'admitted', 'and grandchild');
select is(pg_temp.admit('told', '{"parentRunId": "child", "rootRunId": "elsewhere"}'), 'admitted', 'one that says its root');
select is(
    (
        select count(*)
        from counterfoil.admit_launches(jsonb_build_array(
            pg_temp.launch('{"runId": "b3", "parentRunId": "b2"}'),
            pg_temp.launch('{"runId": "b2", "parentRunId": "b1"}'),
            pg_temp.launch('{"runId": "b1", "parentRunId": "grandchild"}'),
            pg_temp.launch('{"runId": "c2", "parentRunId": "c1"}'),
            pg_temp.launch('{"runId": "c1"}')
        ))
    ),
    5::bigint, 'two families in one call, children first'
);
select is(
    (select jsonb_object_agg(r.run_id, r.root_run_id) from counterfoil.runs as r),
    '{"top": "top", "child": "top", "grandchild": "top", "told": "elsewhere", "b1": "top", "b2": "top", "b3": "top",
      "c1": "c1", "c2": "c1"}'::jsonb,
    'the root is the one said, else the parent''s, else the run itself'
);
select is(
    (select o.payload from counterfoil.outbox as o where o.run_id = 'b3'),
    '{"playId": "play-1", "playName": "audit", "rootRunId": "top", "parentRunId": "b2"}'::jsonb, 'run.created says both'
);
select pg_temp.raises(
    format('select counterfoil.admit_launches(%L)', jsonb_build_array(
        pg_temp.launch('{"runId": "x", "parentRunId": "y", "rootRunId": "r"}'), pg_temp.launch('{"runId": "y", "parentRunId": "x"}')
    )),
    'RL001', 'p_launches[0].parentRunId', 'nobody is their own ancestor'
);

select * from finish();
rollback;
