-- A delivery travels in pieces that are the same for ever, and are the whole of it.
begin;
\ir ../setup.psql
\ir setup.psql
select plan(20);

create function pg_temp.pieces(p_run text, p_events text[], p_owner text default 'd1')
returns jsonb language sql volatile as $function$
    select coalesce(jsonb_agg(jsonb_build_array(p.chunk, p.chunk_count, jsonb_array_length(p.events)) order by p.chunk), '[]')
    from counterfoil.plan_delivery_pieces('acme', p_run, p_events, p_owner) as p
$function$;

select pg_temp.quiet_run('r');
select pg_temp.fact('r', 'a' || i) from generate_series(1, 5) as i;
select pg_temp.end_run('r', '{"terminalLogLines": ["x"], "result": 1}');
select pg_temp.claim('d1', 'r');
select pg_temp.raises($$ select counterfoil.plan_delivery_pieces('acme', 'r', array['a1', 'a2', 'a3', 'a4', 'a5', 'r-end'], 'd1') $$,
    'RL005', 'receipt_not_frozen', 'what is not frozen could still be cut otherwise');
update counterfoil.settings set value = '3' where name = 'delivery_piece_max_events';
select pg_temp.freeze('r', array['a1', 'a2', 'a3', 'a4', 'a5', 'r-end']);
select is(pg_temp.pieces('r', array['a1', 'a2', 'a3', 'a4', 'a5', 'r-end']), '[[1, 3, 3], [2, 3, 3], [3, 3, 1]]', 'by number');
select is(
    (select jsonb_agg(e.event order by p.chunk, e.ordinality)
     from counterfoil.plan_delivery_pieces('acme', 'r', array['r-end', 'a1', 'a2', 'a3', 'a4', 'a5'], 'd1') as p
     cross join lateral jsonb_array_elements(p.events) with ordinality as e (event, ordinality)),
    pg_temp.events('r', 'a1', 'a2', 'a3', 'a4', 'a5', 'r-end'), 'all of them, in order, are the projection'
);
update counterfoil.settings set value = '2' where name = 'delivery_piece_max_events';
select pg_temp.freeze('r', array['a1', 'a2', 'a3', 'a4', 'a5', 'r-end']);
select is(pg_temp.pieces('r', array['a1', 'a2', 'a3', 'a4', 'a5', 'r-end']), '[[1, 3, 3], [2, 3, 3], [3, 3, 1]]', 'a changed setting does not cut it anew');
select pg_temp.expire('r');
select pg_temp.claim('d2', 'r');
select is(pg_temp.pieces('r', array['a1', 'a2', 'a3', 'a4', 'a5', 'r-end'], 'd2'), '[[1, 3, 3], [2, 3, 3], [3, 3, 1]]', 'nor does another dispatcher');
select pg_temp.raises($$ select counterfoil.plan_delivery_pieces('acme', 'r', array['a1'], 'd2') $$, 'RL004', 'delivery_lease_not_current', 'a part of it is nothing');
select is(
    (select array_agg(s.first_index || '/' || s.event_total order by p.chunk)
     from counterfoil.plan_delivery_pieces('acme', 'r', array['a1', 'a2', 'a3', 'a4', 'a5', 'r-end'], 'd2') as p
     cross join lateral counterfoil.assert_delivery('acme', 'r', 'd2', (pg_temp.lane('r')).receipt_key, p.events, p.chunk, p.chunk_count) as s),
    array['0/7', '3/7', '6/7'], 'each piece is proven'
);

-- By size.
update counterfoil.settings set value = '200' where name = 'delivery_piece_max_events';
update counterfoil.settings set value = '1024' where name = 'delivery_piece_max_bytes';
select pg_temp.quiet_run('s');
select pg_temp.fact('s', 's1');
select pg_temp.fact('s', 's2', 'run.progress', jsonb_build_object('text', repeat('x', 3000)));
select pg_temp.fact('s', 's3');
select pg_temp.fact('s', 's4');
select pg_temp.claim('d1', 's');
select pg_temp.freeze('s', array['s1', 's2', 's3', 's4']);
select is(pg_temp.pieces('s', array['s1', 's2', 's3', 's4']), '[[1, 3, 1], [2, 3, 1], [3, 3, 2]]', 'what is larger than a piece travels alone');
update counterfoil.settings set value = '16777216' where name = 'delivery_piece_max_bytes';
select pg_temp.freeze('s', array['s1', 's2', 's3', 's4']);
select is(pg_temp.pieces('s', array['s1', 's2', 's3', 's4']), '[[1, 3, 1], [2, 3, 1], [3, 3, 2]]', 'for ever');

create function pg_temp.cut(p_sizes integer[], p_events integer, p_bytes integer)
returns jsonb language sql as $function$
    select coalesce(jsonb_agg((select jsonb_agg(counterfoil.json_bytes(e)) from jsonb_array_elements(c.events) as e) order by c.chunk), '[]')
    from counterfoil.delivery_pieces(
        (select coalesce(jsonb_agg(to_jsonb(repeat('x', s - 2)) order by o), '[]') from unnest(p_sizes) with ordinality as u (s, o)), p_events, p_bytes
    ) as c
$function$;
select is(pg_temp.cut('{10,10,10}', 9, 30), '[[10, 10, 10]]', 'up to the size');
select is(pg_temp.cut('{10,10,11}', 9, 30), '[[10, 10], [11]]', 'not over it');
select is(pg_temp.cut('{30,30}', 9, 30), '[[30], [30]]', 'exactly the size');
select is(pg_temp.cut('{31,5,5}', 9, 30), '[[31], [5, 5]]', 'a large one first');
select is(pg_temp.cut('{5,31}', 9, 30), '[[5], [31]]', 'a large one last');
select is(pg_temp.cut('{5,5,5,5,5}', 2, 1000), '[[5, 5], [5, 5], [5]]', 'by number');
select is(pg_temp.cut('{}', 2, 1000), '[]', 'nothing');

-- In the order in which the facts were recorded, whatever they are called.
select pg_temp.quiet_run('o');
select pg_temp.fact('o', 'z', 'run.events', '{"events": [{"type": "b"}, {"type": "a"}]}');
select pg_temp.fact('o', 'y', 'run.events', '{"events": [{"type": "d"}, {"type": "c"}]}');
select pg_temp.end_run('o');
select pg_temp.claim('d1', 'o', p_allow => true);
select pg_temp.freeze('o', array['z', 'y', 'o-end']);
select is(
    (select jsonb_agg(e.event -> 'type' order by p.chunk, e.ordinality)
     from counterfoil.plan_delivery_pieces('acme', 'o', array['o-end', 'y', 'z'], 'd1') as p
     cross join lateral jsonb_array_elements(p.events) with ordinality as e (event, ordinality)),
    '["b", "a", "d", "c", "run.completed"]', 'in order'
);

-- Nothing to send.
select pg_temp.quiet_run('n');
select pg_temp.fact('n', 'n1', 'runner.logs');
select pg_temp.claim('d1', 'n');
select pg_temp.freeze('n', array['n1']);
select is(pg_temp.pieces('n', array['n1']), '[]', 'carriers make no piece');
select pg_temp.raises($$ select counterfoil.plan_delivery_pieces('acme', 'n', '{}', 'd1') $$, 'RL001', 'p_event_ids');
select lives_ok($$ select counterfoil.acknowledge_delivery('acme', 'n', array['n1'], 'd1') $$, 'and are acknowledged');

select * from finish();
rollback;
