-- A run of large facts goes in several deliveries: each piece's proof projects all of its delivery.
begin;
\ir ../setup.psql
\ir setup.psql
select plan(8);

select pg_temp.quiet_run('r');
-- One compresses to nothing, one hardly, the others are small.
select pg_temp.fact('r', 'a1', 'run.progress', jsonb_build_object('text', repeat('x', 700000)));
select pg_temp.fact('r', 'a2', 'run.progress', (
    select jsonb_build_object('text', string_agg(md5(i::text), '')) from generate_series(1, 20000) as i
));
select pg_temp.fact('r', 'a' || i) from generate_series(3, 6) as i;
select is(pg_temp.claim('d1', 'r'), array['a1'], 'no fact that would pass prefix_max_bytes');
select pg_temp.freeze('r', array['a1']);
select is(
    pg_temp.grid($$ select a.kind, a.event_id from counterfoil.acknowledge_delivery('acme', 'r', array['a1'], 'd1', 64) as a $$),
    '[["acknowledged", "a1"], ["claimed", "a2"], ["claimed", "a3"], ["claimed", "a4"], ["claimed", "a5"], ["claimed", "a6"]]',
    'what fits goes together, also by continuation'
);
select pg_temp.freeze('r', array['a2', 'a3', 'a4', 'a5', 'a6']);
select pg_temp.expire('r');
select counterfoil.set_setting('prefix_max_bytes', '1024');
select is(pg_temp.claim('d2', 'r'), array['a2', 'a3', 'a4', 'a5', 'a6'], 'a frozen receipt goes whole');

select pg_temp.quiet_run('s');
select pg_temp.fact('s', 'b1', 'run.progress', jsonb_build_object('text', repeat('x', 700000)));
select pg_temp.fact('s', 'b2');
select is(pg_temp.claim('d1', 's'), array['b1'], 'a fact larger than that goes alone');

select pg_temp.quiet_run('t');
select pg_temp.fact('t', 'c1', 'run.events', jsonb_build_object('events', jsonb_build_array(jsonb_build_object('type', 'x.y', 'text', repeat('x', 900)))));
select pg_temp.fact('t', 'c2', 'run.events', jsonb_build_object('events', jsonb_build_array(jsonb_build_object('type', 'x.y', 'text', repeat('x', 900)))));
select pg_temp.end_run('t');
select is(pg_temp.claim('d1', 't', p_allow => true), array['c1'], 'an urgent run changes nothing about it');
select is(
    (select count(*) from counterfoil.widen_delivery('acme', 't', 'c1', 'd1') as w), 1::bigint, 'nor does widening'
);

-- To the byte.
select pg_temp.quiet_run('u');
select pg_temp.fact('u', 'u' || i, 'run.progress', jsonb_build_object('text', repeat('x', 800))) from generate_series(1, 3) as i;
create temporary table size on commit drop as
select sum(pg_column_size(o.payload)) as of_two from counterfoil.outbox as o where o.event_id in ('u1', 'u2');
select counterfoil.set_setting('prefix_max_bytes', to_jsonb(s.of_two)) from size as s;
select is(pg_temp.claim('d1', 'u'), array['u1', 'u2'], 'as many as fit');
select counterfoil.release_delivery('acme', 'u', array['u1'], 'd1');
select counterfoil.set_setting('prefix_max_bytes', to_jsonb(s.of_two - 1)) from size as s;
select is(pg_temp.claim('d1', 'u'), array['u1'], 'to the byte');

select * from finish();
rollback;
