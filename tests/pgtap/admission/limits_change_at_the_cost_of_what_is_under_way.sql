-- SPEC 4: whoever changes limits holds others up, so it must not read all runs that are kept. Counted in rows read, with
-- plans made while nothing was there.
begin;
\ir ../setup.psql
\ir ../attempts/setup.psql
select plan(13);

create function pg_temp.limit_to(p_org text, p_scope text, p_most integer)
returns bigint language plpgsql volatile parallel unsafe as $function$
declare
  v_tables oid[] := array['counterfoil.run_queue', 'counterfoil.runs', 'counterfoil.attempts']::regclass[]::oid[];
  v_before bigint;
begin
  select sum(s.seq_tup_read + coalesce(s.idx_tup_fetch, 0)) into v_before
  from pg_catalog.pg_stat_xact_user_tables as s where s.relid = any (v_tables);
  perform counterfoil.set_admission_limits(p_org, p_scope, jsonb_build_object('maxQueued', p_most));
  return (
    select sum(s.seq_tup_read + coalesce(s.idx_tup_fetch, 0)) - v_before
    from pg_catalog.pg_stat_xact_user_tables as s where s.relid = any (v_tables)
  );
end
$function$;
create function pg_temp.counted(p_org text)
returns bigint[] language sql stable parallel unsafe as $function$
  select array[sum(c.queued), sum(c.active), sum(c.window_launches)]::bigint[] from counterfoil.admission_counters as c where c.org_id = p_org
$function$;

select is(pg_temp.limit_to(null, 'installation', 100000), 0::bigint, 'nothing is there to be read');
select is(pg_temp.limit_to(null, 'default', 100000), 0::bigint, 'for the default neither');
select is(pg_temp.limit_to('org', 'org', 100000), 0::bigint, 'nor for an org');
-- So many changes of a counter in one transaction would take long.
select pg_temp.limit_to(l.org_id, l.scope, null)
from (values (null, 'installation'), (null, 'default'), ('org', 'org')) as l (org_id, scope);

select is(
    (
        select count(*)
        from counterfoil.admit_launches((
            select jsonb_agg(pg_temp.launch(jsonb_build_object('runId', 'r' || i, 'orgId', case when i <= 20 then 'org-' || i else 'org' end)))
            from generate_series(1, 1500) as i
        )) as a
    ),
    1500::bigint, 'fifteen hundred runs'
);
select ok(bool_and(c.outcome = 'cancelled'), 'all end')
from counterfoil.runs as r
cross join lateral counterfoil.cancel_run(r.org_id, r.run_id, null) as c;
update counterfoil.runs as r set created_at = r.created_at - interval '1 hour';
select pg_temp.limit_to(l.org_id, l.scope, 100000)
from (values (null, 'installation'), (null, 'default'), ('org', 'org')) as l (org_id, scope);

-- What is under way: of each kind, also such as stand in no queue.
select is(pg_temp.admit('ready'), 'admitted', 'a run that is ready');
select pg_temp.admit('asleep', '{"availableAt": "2999-01-01T00:00:00Z"}');
select pg_temp.admit('held-' || i, '{"concurrencyKey": "k"}') from generate_series(1, 2) as i;
select pg_temp.admit('late', '{"playName": "late", "deadlineAt": "2020-01-01T00:00:00Z"}');
select is(pg_temp.claim(9, array['late']), array[]::text[], 'one that came too late leaves the queue');
select pg_temp.admit('running-' || i, '{"playName": "running"}') from generate_series(1, 2) as i;
select is(cardinality(pg_temp.claim(9, array['running'])), 2, 'and two run');
select is(pg_temp.counted('org'), array[5, 2, 7]::bigint[], 'so it was counted, step by step');

select ok(r.rows_read < 50, 'an org''s limits read what is under way: ' || r.rows_read)
from (select pg_temp.limit_to('org', 'org', 50000) as rows_read offset 0) as r;
select ok(r.rows_read < 150, 'the default''s that, and a run an org: ' || r.rows_read)
from (select pg_temp.limit_to(null, 'default', 50000) as rows_read offset 0) as r;
select ok(r.rows_read < 150, 'and the installation''s: ' || r.rows_read)
from (select pg_temp.limit_to(null, 'installation', 50000) as rows_read offset 0) as r;
select ok(
    (pg_temp.counted('org'))[1:2] = array[5, 2]::bigint[] and (pg_temp.counted(''))[1:2] = array[5, 2]::bigint[]
    -- The minute may have begun in between.
    and (pg_temp.counted('org'))[3] <= 7,
    'and the counts are what they were: ' || pg_temp.counted('org')::text || pg_temp.counted('')::text
);

select * from finish();
rollback;
