-- Plans are made while the ledger is empty and must still read few rows when a run has a long history beside many others.
begin;
\ir ../setup.psql
\ir setup.psql
select plan(5);

create function pg_temp.rows_read(p_sql text) returns bigint language plpgsql volatile parallel unsafe as $function$
declare
  v_before bigint;
  v_after bigint;
begin
  select sum(t.seq_tup_read + t.idx_tup_fetch) into v_before from pg_stat_xact_user_tables as t where t.schemaname = 'counterfoil' and t.relname like 'ledger%';
  execute p_sql;
  select sum(t.seq_tup_read + t.idx_tup_fetch) into v_after from pg_stat_xact_user_tables as t where t.schemaname = 'counterfoil' and t.relname like 'ledger%';
  return v_after - v_before;
end
$function$;

select pg_temp.run_with('r' || i, array['run.progress'], array['{"n": 1}']::jsonb []) from generate_series(1, 3) as i;
-- The first run makes the plans.
select pg_temp.deliver('r1') from generate_series(1, 3);
select counterfoil.read_run_events('acme', 'r1', 1, 1), counterfoil.run_snapshot('acme', 'r1');
select pg_temp.deliver('r2') from generate_series(1, 2);
insert into counterfoil.ledgers (org_id, run_id, status, created_at, updated_at)
select 'acme', 'x' || i, 'queued', now(), now() from generate_series(1, 3000) as i;
insert into counterfoil.ledger_events
select 'acme', 'r2', 2 + i, 'run.progress', 'e' || i, 0, now(), '{}', now() from generate_series(1, 3000) as i;
update counterfoil.ledgers set last_position = 3002, event_count = 3002 where run_id = 'r2';

select cmp_ok(pg_temp.rows_read($$ select pg_temp.deliver('r2') $$), '<=', 20::bigint, 'an append');
select is((select l.last_position from counterfoil.ledgers as l where l.run_id = 'r2'), 3003::bigint, 'that took place');
select cmp_ok(pg_temp.rows_read($$ select counterfoil.read_run_events('acme', 'r2', 2000, 5) $$), '<=', 20::bigint, 'a page of the history');
select cmp_ok(pg_temp.rows_read($$ select counterfoil.run_snapshot('acme', 'r2') $$), '<=', 2::bigint, 'the snapshot');
select cmp_ok(pg_temp.rows_read($$ select pg_temp.deliver('r3') $$), '<=', 20::bigint, 'the first append of a run');

select * from finish();
rollback;
