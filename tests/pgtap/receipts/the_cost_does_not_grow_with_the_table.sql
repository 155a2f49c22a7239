-- Plans are made while the tables are empty, which is when a wrong index looks as good as the right one, and must still read few
-- rows when an org has thousands.
begin;
\ir ../setup.psql
\ir setup.psql
select plan(12);

-- How many rows a statement reads of the table of receipts.
create function pg_temp.rows_read(p_sql text) returns bigint language plpgsql volatile parallel unsafe as $function$
declare
  v_before bigint;
  v_after bigint;
begin
  select t.seq_tup_read + t.idx_tup_fetch into v_before from pg_stat_xact_user_tables as t where t.relid = 'counterfoil.step_receipts'::regclass;
  execute p_sql;
  select t.seq_tup_read + t.idx_tup_fetch into v_after from pg_stat_xact_user_tables as t where t.relid = 'counterfoil.step_receipts'::regclass;
  return v_after - v_before;
end
$function$;

select pg_temp.held_run('r1');
create temporary table calls (name text, call text, most bigint) on commit drop;
insert into calls values
  ('claim', $$ select counterfoil.claim_receipts('acme', 'r1', 1, array['n1', 'n2'], array['n1', 'n2']) $$, 20),
  ('claim again', $$ select counterfoil.claim_receipts('acme', 'r1', 1, array['n1', 'n2'], array['n1', 'n2']) $$, 20),
  ('heartbeat', $$ select counterfoil.heartbeat_receipts('acme', 'r1', pg_temp.item('n1', 'n1') || pg_temp.item('n2', 'n2')) $$, 20),
  ('mark queued', $$ select counterfoil.mark_receipts_queued('acme', 'r1', pg_temp.item('n1', 'n1')) $$, 20),
  ('mark running', $$ select counterfoil.mark_receipts_running('acme', 'r1', pg_temp.item('n1', 'n1')) $$, 20),
  ('complete', $$ select counterfoil.complete_receipts('acme', 'r1', pg_temp.item('n1', 'n1') || pg_temp.item('n2', 'n2')) $$, 20),
  ('refresh', $$ select counterfoil.claim_receipts('acme', 'r1', 1, array['n1', 'n2'], array['m1', 'm2'], '{"forceRefresh": true}') $$, 20),
  ('release', $$ select counterfoil.release_receipts('acme', 'r1', pg_temp.item('n1', 'm1')) $$, 20),
  ('record', $$ select counterfoil.record_receipt('acme', 'r1', 1, 'l', 'n3', '1') $$, 20),
  ('record again', $$ select counterfoil.record_receipt('acme', 'r1', 1, 'l', 'n1', '1') $$, 20),
  ('recall', $$ select counterfoil.recall_receipts('acme', 'r1', 'n', 10, 1000) $$, 20),
  ('get', $$ select counterfoil.get_receipts('acme', array['n1', 'n2', 'none']) $$, 20);
do $$
declare
  v_call text;
begin
  for v_call in select c.call from pg_temp.calls as c loop
    execute v_call;
  end loop;
end
$$;
delete from counterfoil.step_receipts;
insert into counterfoil.step_receipts (org_id, key, status, run_id, created_at, claimed_at, updated_at, settled_at)
select 'acme', 'k' || i, 'completed', 'r1', now(), now(), now(), now() from generate_series(1, 5000) as i;

select cmp_ok(pg_temp.rows_read(c.call), '<=', c.most, c.name) from calls as c;

select * from finish();
rollback;
