-- JSON can hold it, so it is taken as next to nothing: 22003 would tell a caller nothing.
begin;
\ir ../setup.psql
\ir setup.psql
select plan(6);

select is(pg_temp.admit('a', '{"retryPolicy": {"jitter": 1e-400, "backoffBaseMs": 3600000}}'), 'admitted', 'a launch with hardly any jitter');
select is(pg_temp.claim(), array['a'], 'is claimed');
select is(
    (
        select a.recorded
        from counterfoil.append_fact('org', 'a', 'e', 'run.events', '{"events": [{"type": "a.b", "occurredAt": 1e-400}]}') as a
    ),
    true, 'an event just after 1970 is recorded'
);
select is(
    (select p.event ->> 'occurredAt' from counterfoil.project_fact('org', 'a', 'e') as p), '1970-01-01T00:00:00.000000Z', 'and projected'
);
select is(
    counterfoil.observe_docflow_node('org', 'a', '{"nodeId": "n", "status": "started", "at": 1e-400}'), true, 'an observation too'
);
select is(pg_temp.fail_run('a') ->> 'outcome', 'retry_scheduled', 'the failed attempt is retried');

select * from finish();
rollback;
