-- explain (analyze, buffers) of the hot calls, beside 200 waiting lanes and then 5000, one of them with 5000 facts: a page
-- or two more where an index has grown a level, never what waits. `make bench` asks the same of 1,000,000.
begin;
\ir ../setup.psql
\ir setup.psql
select plan(10);

create function pg_temp.pages(p_sql text) returns bigint language plpgsql volatile parallel unsafe as $function$
declare
    v_held text;
    v_plan json;
begin
    select format('%L::text[], %L::text[], ''lifecycle'', %L::bigint[]', array_agg(l.org_id), array_agg(l.run_id), array_agg(l.head_seq))
    into v_held
    from counterfoil.lanes as l
    where l.lease_owner = 'many';
    execute 'explain (analyze, buffers, format json) ' || replace(p_sql, ':held', v_held) into v_plan;
    return (v_plan -> 0 -> 'Plan' ->> 'Shared Hit Blocks')::bigint + (v_plan -> 0 -> 'Plan' ->> 'Shared Read Blocks')::bigint;
end
$function$;

create temporary table calls (place serial, name text not null, statement text not null) on commit drop;
insert into calls (name, statement) values
('append_fact', $$select * from counterfoil.append_fact('acme', 'r', gen_random_uuid()::text, 'run.progress', '{}')$$),
('claim_deliveries of 1', $$select * from counterfoil.claim_deliveries('one')$$),
('claim_deliveries of 32', $$select * from counterfoil.claim_deliveries('many', p_max_runs => 32)$$),
('the oldest 32', $$select * from counterfoil.claim_deliveries('old', p_max_runs => 32, p_head_priority => 'oldest_ready')$$),
('32 of an org', $$select * from counterfoil.claim_deliveries('org', p_max_runs => 32, p_org_id => 'acme')$$),
('renew_deliveries of 32', $$select * from counterfoil.renew_deliveries(:held, 'many', 30, true)$$),
('acknowledge_deliveries of 32', $$select * from counterfoil.acknowledge_deliveries(:held, 'many')$$),
('the next due time', $$select counterfoil.next_delivery_due_at('lifecycle')$$),
('a claim from a long lane', $$select * from counterfoil.claim_deliveries('long', p_run_id => 'long')$$),
('its acknowledgement', $$select * from counterfoil.acknowledge_deliveries('{acme}', '{long}', 'lifecycle', '{66}', 'long')$$);

-- What is due next lies apart, so that its new versions find room in their pages, as they do where rows are cleaned away.
create function pg_temp.wait(p_from integer, p_lanes integer, p_facts integer) returns void
language sql volatile parallel unsafe as $function$
    insert into counterfoil.outbox (org_id, run_id, seq, event_id, event_type, lane, deferred, payload, delivery_key, created_at)
    select 'acme', 'x' || i, 3, 'x' || i, 'run.progress', 'lifecycle', false, '{}'::jsonb, gen_random_uuid(), now()
    from generate_series(p_from, p_from + p_lanes - 1) as i
    union all
    select 'acme', 'long', i, 'l' || i, 'run.progress', 'lifecycle', false, '{}'::jsonb, gen_random_uuid(), now()
    from generate_series(3, p_facts + 2) as i
    on conflict do nothing;
    insert into counterfoil.lanes (org_id, run_id, lane, priority, due_at, head_seq, tail_seq)
    select 'acme', 'x' || i, 'lifecycle', 3, now() - make_interval(secs => (i * 7919) % 5003), 3, 3
    from generate_series(p_from, p_from + p_lanes - 1) as i
    union all
    select 'acme', 'long', 'lifecycle', 3, now(), 3, p_facts + 2
    on conflict (org_id, run_id, lane, head_seq) do update set tail_seq = excluded.tail_seq;
$function$;

select pg_temp.quiet_run(r.run) from unnest(array['r', 'long']) as r (run);
select pg_temp.wait(1, 200, 100);
savepoint little;
-- Twice: the first pass reads the catalog and plans.
select pg_temp.pages(c.statement) from calls as c order by c.place;
rollback to little;
select json_agg(k.pages) as little from (select pg_temp.pages(c.statement) as pages from calls as c order by c.place) as k \gset
rollback to little;

select pg_temp.wait(201, 4800, 5000);
select cmp_ok(k.pages::numeric, '<=', 1.5 * k.little + 3, format('%s: %s pages, %s before', k.name, k.pages, k.little))
from (
    select c.name, pg_temp.pages(c.statement) as pages, (:'little'::json ->> (c.place - 1))::numeric as little
    from calls as c
    order by c.place
) as k;

select * from finish();
rollback;
