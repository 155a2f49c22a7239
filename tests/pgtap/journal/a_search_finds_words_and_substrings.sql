begin;
\ir ../setup.psql
\ir setup.psql
select plan(41);

select pg_temp.run_with(
  array['runner.logs'],
  array[jsonb_build_object('deferredProjection', true, 'producerAttempt', 1, 'lines', jsonb_build_array(
    'Connection refused by 10.0.0.1:5432', 'connection accepted', 'Größe der Tabelle: 12', 'ошибка сети', '東京タワーで失敗しました',
    'user_id=42 (retry)', '100% _done_ \ ''quoted'' "double"', 'x10.0.0.1y refused connection', 'refused, twice refused'),
    'lineContexts', '[{"level": "error"}, {"level": "INFO"}, null, null, null, null, null, null, {"level": "error"}]'::jsonb)]);
select lives_ok($$ select counterfoil.materialize_runtime_outbox_event('acme', 'f1', 'me') $$);

-- Line numbers within the fact that a query finds, by position; then what the last row says.
create function pg_temp.found(p_query text, p_mode text default 'words', p_level text default null) returns text
language sql stable parallel unsafe as $function$
  select string_agg(case s.kind when 'entry' then (s.position - 2097152)::text else s.kind end, ' ' order by s.position nulls last)
  from counterfoil.search_journal('acme', p_query, 'r1', p_level => p_level, p_mode => p_mode, p_order => 'position') as s
$function$;

select is(pg_temp.found('connection'), '1 2 8 end', 'a word, whatever its case');
select is(pg_temp.found('REFUSED connection'), '1 8 end', 'all words, in any order');
select is(pg_temp.found('"connection refused"'), '1 end', 'quoted text as it stands');
select is(pg_temp.found('connect'), 'end', 'part of a word is no word');
select is(pg_temp.found('connect', 'substring'), '1 2 8 end', 'but a substring');
select is(pg_temp.found('refused connection', 'substring'), '8 end', 'a substring as it stands');
select is(pg_temp.found('10.0.0.1'), '1 end', 'what punctuation joins stands together, as words of its own');
select is(pg_temp.found('0.0.1', 'substring'), '1 8 end', 'a substring begins and ends within words');
select is(pg_temp.found('n refused b', 'substring'), '1 end', 'and holds whole ones');
select is(pg_temp.found('größe'), '3 end', 'letters with marks');
select is(pg_temp.found('ошибка'), '4 end', 'Cyrillic');
select is(pg_temp.found('タワー'), '5 end', 'a script without spaces, from its middle');
select is(pg_temp.found('ワタ'), 'end', 'where the order of letters counts');
select is(pg_temp.found('user_id'), '6 end', 'an underscore is part of a word');
select is(pg_temp.found('user'), 'end', 'so that a part of it is not found');
select is(pg_temp.found('%'), '7 end', 'punctuation alone is looked for as it stands');
select is(pg_temp.found('_done_'), '7 end', 'nothing is a pattern');
select is(pg_temp.found('\', 'substring'), '7 end', 'not even a backslash');
select is(pg_temp.found('"'), '7 end', 'a lone quote');
select is(pg_temp.found('refused', p_level => 'ERROR'), '1 9 end', 'a level, whatever its case');
select is(pg_temp.found(null), '1 2 3 4 5 6 7 8 9 end', 'no query finds everything');
select is(pg_temp.found('  '), '1 2 3 4 5 6 7 8 9 end', 'nor does a blank one ask for anything');

-- Hostile queries: no error, and none of them is slow.
set local statement_timeout = '20s';
select is(pg_temp.found(q), 'end', left(q, 30))
from unnest(array[
  repeat('a', 5000000), repeat('a ', 2500000), repeat('"row sheet ', 500000), repeat('"', 10001) || 'z', '(((((', '*?+[', 'a & | ! <-> b:*', ''';select 1', E'\x01\x02'
]) as q;
select is(pg_temp.found(q, 'substring'), 'end', 'as a substring: ' || left(q, 30))
from unnest(array[repeat('a', 5000000), repeat('a ', 2500000), repeat(' ', 10000) || 'refused', repeat('東京', 2000000)]) as q;
set local statement_timeout = 0;

-- Of a long query the first 10,000 characters count, and the beginning of a word that they cut through.
select is(pg_temp.found('refused ' || repeat(' ', 9992) || 'connection'), '1 8 9 end', 'words further on do not count');
select is(pg_temp.found(repeat(' ', 9995) || 'connection'), '1 2 8 end', 'a word that is cut through is looked for by its beginning');
select is(pg_temp.found(repeat(' ', 9995) || 'connwrong'), 'end', 'and that must be there');

select is(
  (select s.highlights from counterfoil.search_journal('acme', 'refused', 'r1', p_limit => 1) as s where s.kind = 'entry'),
  '[[0, 7], [15, 7]]', 'matches are highlighted: each word that was asked for');
select is(
  (select s.highlights from counterfoil.search_journal('acme', 'SE', 'r1', p_mode => 'substring', p_limit => 1) as s where s.kind = 'entry'),
  '[[4, 2], [19, 2]]', 'each substring');

select * from finish();
rollback;
