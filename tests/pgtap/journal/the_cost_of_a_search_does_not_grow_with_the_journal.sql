begin;
\ir ../setup.psql
\ir setup.psql
select plan(12);

insert into counterfoil.run_journal (
  org_id, run_id, identity, channel, position, producer_attempt, occurred_at, line, content_digest, event_id, recorded_at, terms
)
select e.org, e.run, 'i' || e.n, 'log', e.n, 1, e.at, e.line, sha256(''), 'e', e.at,
  counterfoil.journal_terms(e.org, e.run, 'log', null, e.at, e.line)
from (
  select n, case when n % 4 = 0 then 'other' else 'acme' end as org, 'r' || n / 1000 as run,
    timestamptz '2026-01-01Z' + n * interval '20 seconds' as at,
    'every entry has these words' || case when n % 5000 = 1 then ' rare' else '' end
    || case when n % 150 = 1 then ' middling' else '' end as line
  from generate_series(1, 40000) as n
) as e;

-- Pages that a search reads, in memory or not, of tables and indexes.
do $$ begin perform gin_clean_pending_list('counterfoil.run_journal_terms_idx'); end $$;
create function pg_temp.pages(p_query text) returns bigint language plpgsql volatile parallel unsafe as $function$
declare
  v_plan jsonb;
begin
  -- Twice: the first call of a session also reads the catalog.
  for v_turn in 1..2 loop
    execute format(
      'explain (analyze, buffers, format json) select * from counterfoil.search_journal(%L, %L, p_limit => 20)', 'acme', p_query)
    into v_plan;
  end loop;
  return (v_plan #>> '{0,Plan,Shared Hit Blocks}')::bigint + (v_plan #>> '{0,Plan,Shared Read Blocks}')::bigint;
end
$function$;

select cmp_ok(pg_temp.pages('rare'), '<=', 60::bigint, 'pages: a rare word, while there are no statistics');
analyze counterfoil.run_journal;

-- Rows that a search reads of the journal, whether through an index or without.
create function pg_temp.cost(p_query text, p_org_id text default 'acme', p_mode text default 'words', p_run_id text default null)
returns bigint language plpgsql volatile parallel unsafe as $function$
declare
  v_before bigint;
begin
  select t.seq_tup_read + t.idx_tup_fetch into v_before from pg_stat_xact_user_tables as t where t.relname = 'run_journal';
  perform s.kind from counterfoil.search_journal(p_org_id, p_query, p_run_id, p_limit => 20, p_mode => p_mode) as s;
  return (select t.seq_tup_read + t.idx_tup_fetch - v_before from pg_stat_xact_user_tables as t where t.relname = 'run_journal');
end
$function$;

select cmp_ok(pg_temp.cost('every words'), '<=', 20::bigint, 'a word in every entry: no more than the page');
select cmp_ok(pg_temp.cost('rare'), '<=', 250::bigint, 'a rare word: the entries that have it, and a look at the latest');
select cmp_ok(pg_temp.cost('rare', 'other'), '<=', 250::bigint, 'a word that only other orgs have');
select cmp_ok(pg_temp.cost('every never'), '<=', 250::bigint, 'a word that nobody has, beside one that all have');
select cmp_ok(pg_temp.cost('middling'), '<=', 1250::bigint, 'a word in between');
select cmp_ok(pg_temp.cost('idd', p_mode => 'substring'), '<=', 20001::bigint, 'a substring: as far as the cap');
select is(pg_temp.cost('every', 'nobody'), 0::bigint, 'an org without a journal: nothing');

select cmp_ok(pg_temp.pages('every words'), '<=', 30::bigint, 'pages: a word in every entry');
select cmp_ok(pg_temp.pages('rare'), '<=', 60::bigint, 'pages: a rare word');
select cmp_ok(pg_temp.pages('every never'), '<=', 60::bigint, 'pages: a word that nobody has, beside one that all have');
select cmp_ok(pg_temp.pages('middling'), '<=', 400::bigint, 'pages: a word in between');

select * from finish();
rollback;
