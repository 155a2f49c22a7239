-- Arguments of a claim, and the bounds of what it takes.
begin;
\ir ../setup.psql
\ir setup.psql
select plan(18);

select pg_temp.quiet_run('r');
select pg_temp.fact('r', 'a1');

create function pg_temp.bad(p_detail text, p_arguments text)
returns text language sql as $function$
    select pg_temp.raises('select counterfoil.claim_deliveries(' || p_arguments || ')', 'RL001', p_detail, p_arguments)
$function$;

select pg_temp.bad('p_lease_owner', 'null');
select pg_temp.bad('p_lease_owner', '''''');
select pg_temp.bad('p_lease_owner', $$ repeat('x', 201) $$);
select pg_temp.bad('p_limit', $$ 'd', p_limit => 0 $$);
select pg_temp.bad('p_limit', $$ 'd', p_limit => null $$);
select pg_temp.bad('p_max_runs', $$ 'd', p_max_runs => 0 $$);
select pg_temp.bad('p_max_runs', $$ 'd', p_max_runs => null $$);
select pg_temp.bad('p_lane', $$ 'd', p_lane => 'fast' $$);
select pg_temp.bad('p_lane', $$ 'd', p_lane => null $$);
select pg_temp.bad('p_head_priority', $$ 'd', p_head_priority => 'newest' $$);
select pg_temp.bad('p_head_priority', $$ 'd', p_head_priority => null $$);
select pg_temp.bad('p_org_id', $$ 'd', p_org_id => '' $$);
select pg_temp.bad('p_run_id', $$ 'd', p_run_id => E'a\tb' $$);
select is((pg_temp.lane('r')).lease_generation, 0::bigint, 'none of which claimed anything');

update counterfoil.settings set value = '1' where name = 'claim_batch_max';
select pg_temp.quiet_run('s');
select pg_temp.fact('s', 'b1');
select is(pg_temp.claim('d', p_max_runs => 1000), array['a1'], 'more runs than claim_batch_max are asked for in vain');
select is(pg_temp.claim('d', p_max_runs => 1000, p_org => 'acme'), array['b1'], 'also of an org');
delete from counterfoil.lanes where run_id = 's';
select is((pg_temp.lane('r')).lease_generation, 1::bigint, 'a claim counts');
update counterfoil.lanes set lease_expires_at = '-infinity';
select counterfoil.claim_deliveries('d', 100000);
select ok((pg_temp.lane('r')).lease_expires_at < clock_timestamp() + interval '301 seconds', 'no lease is over 300 s');

select * from finish();
rollback;
