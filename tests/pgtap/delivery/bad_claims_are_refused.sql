-- Arguments of a claim and of what is done with it, and the bounds of what it takes.
begin;
\ir ../setup.psql
\ir setup.psql
select plan(37);

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
create function pg_temp.bad_call(p_detail text, p_call text)
returns text language sql as $function$
    select pg_temp.raises('select counterfoil.' || p_call, 'RL001', p_detail, p_call)
$function$;
select pg_temp.bad_call('p_org_id', $$ take_over_delivery('', 'r', 'c') $$);
select pg_temp.bad_call('p_run_id', $$ take_over_delivery('acme', '', 'c') $$);
select pg_temp.bad_call('p_lease_owner', $$ take_over_delivery('acme', 'r', '') $$);
select pg_temp.bad_call('p_limit', $$ take_over_delivery('acme', 'r', 'c', p_limit => 0) $$);
select pg_temp.bad_call('p_org_id', $$ release_delivery('', 'r', array['a1'], 'd') $$);
select pg_temp.bad_call('p_run_id', $$ release_delivery('acme', '', array['a1'], 'd') $$);
select pg_temp.bad_call('p_lease_owner', $$ release_delivery('acme', 'r', array['a1'], '') $$);
select pg_temp.bad_call('p_event_ids', $$ release_delivery('acme', 'r', '{}', 'd') $$);
select pg_temp.bad_call('p_event_ids', $$ release_delivery('acme', 'r', '{{a1}}', 'd') $$);
select pg_temp.bad_call('p_lease_owner', $$ release_delivery(array['nothing'], '') $$);
select pg_temp.bad_call('p_event_ids', $$ release_delivery('{}', 'd') $$);
select pg_temp.bad_call('p_lease_owner', $$ renew_deliveries('{acme}', '{r}', 'lifecycle', '{3}', '') $$);
select pg_temp.bad_call('p_lane', $$ renew_deliveries('{acme}', '{r}', 'fast', '{3}', 'd') $$);
select pg_temp.bad_call('p_run_ids', $$ renew_deliveries('{acme}', '{r,r}', 'lifecycle', '{3}', 'd') $$);
select pg_temp.bad_call('p_error.eventId', $$ settle_delivery_failure('acme', 'r', array['7'], 'd', '{"message": "m", "eventId": 7}') $$);
select is((pg_temp.lane('r')).lease_generation, 0::bigint, 'none of which claimed anything');

update counterfoil.settings set value = '1' where name = 'claim_batch_max';
select pg_temp.quiet_run('s');
select pg_temp.fact('s', 'b1');
select is(pg_temp.claim('d', p_max_runs => 1000), array['a1'], 'more runs than claim_batch_max are asked for in vain');
select is(pg_temp.claim('d', p_max_runs => 1000, p_org => 'acme'), array['b1'], 'also of an org');
select is((pg_temp.lane('r')).lease_generation, 1::bigint, 'a claim counts');
-- Whether more may wait, as the database knows, whatever was asked for.
create function pg_temp.filled(p_max_runs integer, p_org text default null)
returns boolean[] language sql volatile parallel unsafe as $function$
    select array_agg(c.filled) from counterfoil.claim_deliveries('d', p_max_runs => p_max_runs, p_org_id => p_org) as c
$function$;
update counterfoil.lanes set lease_expires_at = '-infinity';
select is(pg_temp.filled(1000), '{t}', 'and then more may wait');
update counterfoil.lanes set lease_expires_at = '-infinity';
select is(pg_temp.filled(1000, 'acme'), '{t}', 'also of an org');
update counterfoil.settings set value = null where name = 'claim_batch_max';
update counterfoil.lanes set lease_expires_at = '-infinity';
select is(pg_temp.filled(2), '{t,t}', 'as many as were asked for');
update counterfoil.lanes set lease_expires_at = '-infinity';
select is(pg_temp.filled(3), '{f,f}', 'or fewer: that is all');
delete from counterfoil.lanes where run_id = 's';

update counterfoil.lanes set lease_expires_at = '-infinity';
select counterfoil.claim_deliveries('d', 100000);
select ok((pg_temp.lane('r')).lease_expires_at < clock_timestamp() + interval '301 seconds', 'no lease is over 300 s');

select * from finish();
rollback;
