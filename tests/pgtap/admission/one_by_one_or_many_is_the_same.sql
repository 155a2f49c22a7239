-- admit_launch writes the ordinary launch by a way of its own: what it writes is what admit_launches writes.
begin;
\ir ../setup.psql
\ir setup.psql
select plan(11);

create temporary table given (place bigint not null, run_id text not null, more jsonb not null) on commit drop;
insert into given (place, run_id, more)
select g.place, 'run-' || g.place, g.more
from unnest(array[
    '{}', '{"priority": 0}', '{"maxAttempts": 7, "attemptTimeoutSeconds": 60}', '{"deadlineAt": "2999-01-02T03:04:05+01:00"}',
    '{"releaseLane": "blue", "runtimeApiBaseUrl": "https://api.example", "runtimeAuthority": {"a": 1}}',
    '{"priority": null, "maxAttempts": null, "releaseLane": null, "deadlineAt": null, "attemptTimeoutSeconds": null}',
    '{"concurrencyKey": null, "parentRunId": null, "rootRunId": null, "availableAt": null}',
    '{"inputFileId": "f"}', '{"availableAt": "2999-01-01T00:00:00Z"}', '{"concurrencyKey": "k"}',
    '{"rootRunId": "tree"}', '{"parentRunId": "run-1"}'
]::jsonb[]) with ordinality as g (more, place);
-- More than what is small at a glance.
insert into given (place, run_id, more) values (13, 'run-13', jsonb_build_object('input', repeat('x', 1000)));

create function pg_temp.launch_of(p_org_id text, p_run_id text, p_more jsonb)
returns jsonb language sql immutable parallel unsafe as $function$
  select pg_temp.launch(p_more || jsonb_build_object('orgId', p_org_id, 'runId', p_run_id))
$function$;

-- A table's rows of an org without what differs from call to call: the org, random ids, and times, of which it is told
-- whether they are the run's own.
create function pg_temp.written(p_table regclass, p_org_id text)
returns jsonb language plpgsql volatile parallel unsafe as $function$
declare
  v_rows jsonb;
begin
  execute format($$
    select jsonb_agg(
      (to_jsonb(t) - array['org_id', 'launch', 'launch_digest', 'event_id', 'delivery_key', 'created_at', 'available_at',
        'ready_at', 'queued_at', 'due_at', 'dispatch_authority'])
      || jsonb_build_object('times', (
        select jsonb_object_agg(f.key, case when f.value::timestamptz between r.created_at - interval '1 ms' and r.created_at
          then 'then' else f.value end)
        from jsonb_each_text(to_jsonb(t)) as f
        where f.key in ('created_at', 'available_at', 'ready_at', 'queued_at', 'due_at')))
      || jsonb_build_object('launch', (to_jsonb(t) -> 'launch') - 'orgId', 'authority', (to_jsonb(t) -> 'dispatch_authority') - 'orgId',
        'event', left(to_jsonb(t) ->> 'event_id', 12))
      order by t.run_id)
    from %s as t
    inner join counterfoil.runs as r on r.org_id = t.org_id and r.run_id = t.run_id
    where t.org_id = %L $$, p_table, p_org_id) into v_rows;
  return v_rows;
end
$function$;

select is(
    (
        select array_agg(row(a.run_id, a.outcome, a.status)::text order by g.place)
        from given as g
        cross join lateral counterfoil.admit_launch(pg_temp.launch_of('one', g.run_id, g.more)) as a
    ),
    (
        select array_agg(row(g.run_id, 'admitted', 'queued')::text order by g.place)
        from given as g
    ),
    'one by one, each is admitted'
);
select is(
    (
        select count(*)
        from counterfoil.admit_launches(
            (select jsonb_agg(pg_temp.launch_of('many', g.run_id, g.more) order by g.place) from given as g)
        ) as a
        where a.outcome = 'admitted'
    ),
    13::bigint, 'and in one call'
);

select is(pg_temp.written(t.name::regclass, 'one'), pg_temp.written(t.name::regclass, 'many'), t.name || ' hold the same')
from unnest(array[
    'counterfoil.runs', 'counterfoil.launches', 'counterfoil.run_queue', 'counterfoil.outbox', 'counterfoil.lanes'
]) as t (name);
select is(jsonb_array_length(pg_temp.written('counterfoil.runs', 'one')), 13, 'which are 13 runs');

select is_empty(
    $$
    select r.org_id, r.run_id
    from counterfoil.runs as r
    inner join counterfoil.launches as l on l.org_id = r.org_id and l.run_id = r.run_id
    where r.launch_digest <> counterfoil.canonical_digest(counterfoil.launch_identity(l.launch))
    $$,
    'each has the digest of its launch'
);
select is_empty(
    $$
    select 1
    from given as g
    cross join lateral counterfoil.admit_launch(pg_temp.launch_of('many', g.run_id, g.more)) as a
    where a.outcome <> 'replayed'
    $$,
    'what was launched in one call is known one by one'
);
select is_empty(
    $$
    select 1
    from counterfoil.admit_launches((select jsonb_agg(pg_temp.launch_of('one', g.run_id, g.more)) from given as g)) as a
    where a.outcome <> 'replayed'
    $$,
    'and the other way round'
);

select * from finish();
rollback;
