begin;
\ir ../setup.psql
\ir setup.psql
select plan(8);

create function pg_temp.add(p_from integer, p_to integer, p_every integer, p_line text, p_seconds integer default 60)
returns void language sql volatile parallel unsafe as $function$
  insert into counterfoil.run_journal (
    org_id, run_id, identity, channel, position, producer_attempt, occurred_at, line, content_digest, event_id, recorded_at, terms
  )
  select 'acme', 'r' || n % 3, 'i' || n, 'log', n, 1, e.at, e.line, sha256(''), 'e', e.at,
    counterfoil.journal_terms('acme', 'r' || n % 3, 'log', null, e.at, e.line)
  from generate_series(p_from, p_to) as n
  -- Times come in pairs, so that pages end between equals.
  cross join lateral (
    select timestamptz '2026-01-01Z' + (n / 2) * 2 * p_seconds * interval '1 second' as at,
      case when n % p_every = 0 then p_line else 'something else' end || ' ' || n as line
  ) as e
$function$;

-- Reads everything page by page; later entries arrive after each page.
create function pg_temp.pages(p_query text, p_run_id text, p_order text, p_mode text default 'words', p_limit integer default 7)
returns table (positions bigint[], pages integer) language plpgsql volatile parallel unsafe as $function$
declare
  v_cursor jsonb;
  v_row record;
  v_kind text := 'more';
begin
  positions := '{}';
  pages := 0;
  while v_kind = 'more' and pages < 2000 loop
    for v_row in
      select * from counterfoil.search_journal('acme', p_query, p_run_id, p_before => v_cursor, p_limit => p_limit, p_order => p_order, p_mode => p_mode)
    loop
      v_kind := v_row.kind;
      v_cursor := v_row.cursor;
      if v_kind = 'entry' then
        positions := positions || v_row.position;
      end if;
    end loop;
    pages := pages + 1;
    perform pg_temp.add(10000000 + pages * 2, 10000001 + pages * 2, 1, 'rare common middling');
  end loop;
  return next;
end
$function$;

select pg_temp.add(1, 9000, 1, 'common');
select pg_temp.add(9001, 12000, 37, 'common rare');
select pg_temp.add(12001, 30000, 10, 'middling', 1);
analyze counterfoil.run_journal;

-- What was there before the first page, in the order of the search.
create function pg_temp.expected(p_word text, p_run_id text, p_forwards boolean) returns bigint[]
language sql stable parallel unsafe as $function$
  select array_agg(
    j.position order by
      case when p_run_id is null then j.occurred_at end desc, case when p_run_id is null then j.run_id end desc,
      j.position * case when p_forwards then 1 else -1 end)
  from counterfoil.run_journal as j
  where j.line ~ ('\m' || p_word || '\M') and (p_run_id is null or j.run_id = p_run_id)
$function$;

create temp table wanted as
select
  pg_temp.expected('common', null, false) as common, pg_temp.expected('rare', null, false) as rare,
  pg_temp.expected('middling', null, false) as middling, pg_temp.expected('common', 'r1', true) as forwards,
  pg_temp.expected('rare', 'r2', false) as backwards;

select is((select p.positions from pg_temp.pages('rare', null, 'newest') as p), w.rare, 'a rare word') from wanted as w;
delete from counterfoil.run_journal where position >= 10000000;
select is((select p.positions from pg_temp.pages('common', null, 'newest', p_limit => 499) as p), w.common, 'a common word') from wanted as w;
delete from counterfoil.run_journal where position >= 10000000;
select is((select p.positions from pg_temp.pages('middling', null, 'newest', p_limit => 97) as p), w.middling, 'a word in between') from wanted as w;
delete from counterfoil.run_journal where position >= 10000000;
select is((select p.positions from pg_temp.pages('iddlin', null, 'newest', 'substring', 200) as p), w.middling, 'a substring') from wanted as w;
delete from counterfoil.run_journal where position >= 10000000;
select is(
  (select p.positions[: cardinality(w.forwards)] from pg_temp.pages('common', 'r1', 'position', p_limit => 499) as p), w.forwards,
  'a run''s, forwards') from wanted as w;
delete from counterfoil.run_journal where position >= 10000000;
select is((select p.positions from pg_temp.pages('rare', 'r2', 'newest') as p), w.backwards, 'a run''s, backwards') from wanted as w;
delete from counterfoil.run_journal where position >= 10000000;

-- A substring that is nowhere: pages come back empty, and say how far they looked.
select is(
  (select p::text from pg_temp.pages('owhere', null, 'newest', 'substring') as p), '({},2)',
  'nothing is found, in two looks of 20,000');
select is(
  (select s.kind from counterfoil.search_journal('acme', 'rare', p_limit => 5) as s where s.kind <> 'entry'), 'more',
  'a full page says that there may be more');

select * from finish();
rollback;
