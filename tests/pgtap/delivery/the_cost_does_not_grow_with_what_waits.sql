-- Plans are made while nothing waits, and must still read few rows beside 5000 waiting lanes and one with 5000 facts.
begin;
\ir ../setup.psql
\ir setup.psql
select plan(11);

create function pg_temp.rows_read(p_sql text) returns bigint language plpgsql volatile parallel unsafe as $function$
declare
  v_before bigint;
  v_after bigint;
begin
  select sum(t.seq_tup_read + t.idx_tup_fetch) into v_before
  from pg_stat_xact_user_tables as t
  where t.schemaname = 'counterfoil' and t.relname in ('outbox', 'lanes', 'deliveries', 'runs', 'purged_facts', 'launches');
  execute p_sql;
  select sum(t.seq_tup_read + t.idx_tup_fetch) into v_after
  from pg_stat_xact_user_tables as t
  where t.schemaname = 'counterfoil' and t.relname in ('outbox', 'lanes', 'deliveries', 'runs', 'purged_facts', 'launches');
  return v_after - v_before;
end
$function$;

-- Through the whole path, one lane or many by their last facts.
create function pg_temp.acknowledge(p_runs text[], p_seq bigint) returns boolean language sql volatile parallel unsafe as $function$
    select bool_and(a.acknowledged)
    from counterfoil.acknowledge_deliveries(
        array_fill('acme'::text, array[cardinality(p_runs)]), p_runs, 'lifecycle',
        array_fill(p_seq, array[cardinality(p_runs)]), 'd1'
    ) as a
$function$;
create function pg_temp.prove(p_run text, p_event text) returns bigint language sql volatile parallel unsafe as $function$
    select a.last_seq
    from counterfoil.assert_delivery('acme', p_run, 'd1', pg_temp.key(p_run, p_event), pg_temp.events(p_run, p_event)) as a
$function$;

select pg_temp.quiet_run(r.run) from unnest(array['warm', 'r', 'long']) as r (run);
-- The first delivery makes the plans.
select pg_temp.fact('warm', 'w1'), pg_temp.claim(), pg_temp.freeze('warm', array['w1']), pg_temp.prove('warm', 'w1');
select pg_temp.acknowledge(array['warm'], 3);
select count(*) from counterfoil.append_facts('acme', 'warm', '[{"eventId": "w2", "eventType": "run.progress", "payload": {}}]');
select pg_temp.claim('d1', null, 64, 1, p_org => 'acme'), pg_temp.acknowledge(array['warm'], 4);
select pg_temp.fact('warm', 'w3'), pg_temp.claim('d1', 'warm'), pg_temp.acknowledge(array['warm'], 5);

insert into counterfoil.outbox (org_id, run_id, seq, event_id, event_type, lane, deferred, payload, delivery_key, created_at)
select 'acme', 'x' || i, 3, 'x' || i, 'run.progress', 'lifecycle', false, '{}'::jsonb, gen_random_uuid(), now()
from generate_series(1, 5000) as i
union all
select 'acme', 'long', 2 + i, 'l' || i, 'run.progress', 'lifecycle', false, '{}'::jsonb, gen_random_uuid(), now()
from generate_series(1, 5000) as i;
insert into counterfoil.lanes (org_id, run_id, lane, priority, due_at, head_seq, tail_seq)
select 'acme', 'x' || i, 'lifecycle', 3, now() - make_interval(secs => i), 3, 3
from generate_series(1, 5000) as i
union all
select 'acme', 'long', 'lifecycle', 3, now(), 3, 5002;

select cmp_ok(
    pg_temp.rows_read($$ select counterfoil.append_fact('acme', 'r', 'e1', 'run.progress', '{}') $$), '<=', 8::bigint, 'an append'
);
select cmp_ok(
    pg_temp.rows_read($$ select counterfoil.append_facts('acme', 'r', '[
        {"eventId": "e2", "eventType": "run.progress", "payload": {}}, {"eventId": "e3", "eventType": "run.progress", "payload": {}}
    ]') $$), '<=', 12::bigint, 'a batch'
);
select cmp_ok(pg_temp.rows_read($$ select pg_temp.claim() $$), '<=', 12::bigint, 'a claim of one lane');
select cmp_ok(pg_temp.rows_read($$ select pg_temp.claim('d1', null, 64, 32) $$), '<=', 12 * 32::bigint, 'a claim of 32 lanes');
select cmp_ok(
    pg_temp.rows_read($$ select pg_temp.claim('d2', null, 64, 8, p_org => 'acme') $$), '<=', 12 * 8 + 33::bigint, 'an org''s claim passes over leases only'
);
select cmp_ok(pg_temp.rows_read($$ select pg_temp.claim('d1', 'long') $$), '<=', 4 * 64::bigint, 'a claim from a long lane reads its prefix');
select cmp_ok(pg_temp.rows_read($$ select pg_temp.freeze('x5000', array['x5000']) $$), '<=', 8::bigint, 'a freeze');
select cmp_ok(pg_temp.rows_read($$ select pg_temp.prove('x5000', 'x5000') $$), '<=', 12::bigint, 'a proof');
select cmp_ok(
    pg_temp.rows_read($$ select pg_temp.acknowledge(array(select 'x' || i from generate_series(4981, 5000) as i), 3) $$), '<=', 4 * 20::bigint,
    'an acknowledgement of 20 lanes'
);
select is(pg_temp.lane('x4981'), null, 'took place');
select cmp_ok(pg_temp.rows_read($$ select pg_temp.acknowledge(array['long'], 66) $$), '<=', 4::bigint, 'an acknowledgement of a long lane');

select * from finish();
rollback;
