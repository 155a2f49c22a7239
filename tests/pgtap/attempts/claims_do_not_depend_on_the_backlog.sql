-- SPEC 5: the cost of a claim does not grow with the backlog, also under plans that were made while the tables were
-- empty; recovery reads only active runs of its release lane. Counted in rows read, not in time.
begin;
\ir ../setup.psql
\ir setup.psql
select plan(14);

-- Rows of a table that a statement reads, sequentially or by index.
create function pg_temp.rows_read(p_table regclass)
returns bigint language sql volatile parallel unsafe as $function$
  select s.seq_tup_read + coalesce(s.idx_tup_fetch, 0) from pg_catalog.pg_stat_xact_user_tables as s where s.relid = p_table
$function$;
create function pg_temp.cost(p_sql text)
returns bigint[] language plpgsql volatile parallel unsafe as $function$
declare
  v_tables regclass[] := array['counterfoil.run_queue', 'counterfoil.runs', 'counterfoil.attempts']::regclass[];
  v_before bigint[];
begin
  v_before := array(select pg_temp.rows_read(t.name) from unnest(v_tables) with ordinality as t (name, n) order by t.n);
  execute p_sql;
  return array(select pg_temp.rows_read(t.name) - v_before[t.n] from unnest(v_tables) with ordinality as t (name, n) order by t.n);
end
$function$;

select is(cardinality(pg_temp.claim()), 0, 'plans are made while nothing is there');
select is((select count(*) from counterfoil.recover_attempts(10, 'default')), 0::bigint, 'for recovery too');

select is(
    (
        select count(*)
        from counterfoil.admit_launches((
            select jsonb_agg(pg_temp.launch(jsonb_build_object(
                'runId', 'r' || i, 'orgId', case when i <= 50 then 'small-' || i else 'big' end,
                'playName', case when i % 10 = 9 then 'unknown' else 'audit' end, 'releaseLane', case when i % 10 = 8 then 'blue' else 'default' end
            )))
            from generate_series(1, 5000) as i
        )) as a
    ),
    5000::bigint, 'five thousand runs'
);
-- Among them such as nobody can claim now: asleep, or held behind a key.
select is(
    (
        select count(*)
        from counterfoil.admit_launches((
            select jsonb_agg(pg_temp.launch(jsonb_build_object('runId', 's' || i, 'orgId', 'aaa-' || i % 200)
                || case when i % 2 = 0 then '{"availableAt": "2036-01-01T00:00:00Z"}'::jsonb else '{"concurrencyKey": "k"}' end))
            from generate_series(1, 2000) as i
        )) as a
    ),
    2000::bigint, 'and two thousand that are asleep or held'
);

select ok(c.cost[1] < 50 and c.cost[2] < 50 and c.cost[3] < 20, 'a claim of one reads a few rows: ' || c.cost::text)
from (select pg_temp.cost($$ select pg_temp.claim(1) $$) as cost offset 0) as c;
select ok(c.cost[1] < 50 and c.cost[2] < 50 and c.cost[3] < 20, 'so does one that names its play: ' || c.cost::text)
from (select pg_temp.cost($$ select pg_temp.claim(1, array['audit']) $$) as cost offset 0) as c;
select ok(c.cost[1] < 1000 and c.cost[2] < 1500 and c.cost[3] < 500, 'a claim of a hundred reads some for each: ' || c.cost::text)
from (select pg_temp.cost($$ select pg_temp.claim(100) $$) as cost offset 0) as c;
select ok(c.cost[1] < 10 and c.cost[2] < 10, 'a claim that finds nothing reads nearly nothing: ' || c.cost::text)
from (select pg_temp.cost($$ select pg_temp.claim(1, array['absent']) $$) as cost offset 0) as c;
select ok(c.cost[1] < 10 and c.cost[2] < 10, 'so does the question when to claim: ' || c.cost::text)
from (select pg_temp.cost($$ select counterfoil.next_attempt_due_at(null, 'default') $$) as cost offset 0) as c;

-- Recovery: what is active in the lane, not what is queued, nor what is active elsewhere.
select is(cardinality(pg_temp.claim(300, null, 'blue')), 300, 'three hundred runs are active in another lane');
select pg_temp.lapse('r1');
select ok(c.cost[2] < 20 and c.cost[3] < 150, 'recovery reads the active runs of its lane: ' || c.cost::text)
from (select pg_temp.cost($$ select * from counterfoil.recover_attempts(10, 'default') $$) as cost offset 0) as c;
select ok(c.cost[2] < 10 and c.cost[3] < 10, 'where nothing is active it reads nothing: ' || c.cost::text)
from (select pg_temp.cost($$ select * from counterfoil.recover_attempts(10, 'green') $$) as cost offset 0) as c;

-- An end and a heartbeat cost the same whatever is there.
select ok(c.cost[1] < 10 and c.cost[2] < 30 and c.cost[3] < 10, 'a completion reads its own rows: ' || c.cost::text)
from (select pg_temp.cost($$ select pg_temp.complete((select c.run_id from pg_temp.claims as c where c.turn > 10 limit 1)) $$) as cost offset 0) as c;
select ok(c.cost[2] < 30 and c.cost[3] < 30, 'so does an admission: ' || c.cost::text)
from (select pg_temp.cost($$ select pg_temp.admit('one-more') $$) as cost offset 0) as c;

select * from finish();
rollback;
