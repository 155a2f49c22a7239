begin;
\ir ../setup.psql
\ir setup.psql
select plan(18);

insert into counterfoil.run_journal (
  org_id, run_id, identity, channel, position, producer_attempt, level, occurred_at, line, content_digest, event_id, recorded_at, terms
)
select e.org, e.run, 'i' || e.n, e.channel, e.n, 1, e.level, e.at, e.line, sha256(''), 'e', e.at,
  counterfoil.journal_terms(e.org, e.run, e.channel, e.level, e.at, e.line)
from (values
  ('acme', 'r1', 1, 'log', 'info', timestamptz '2026-01-01T00:00:00Z', 'shared word one'),
  ('acme', 'r1', 2, 'progress', null, timestamptz '2026-01-02T00:00:00Z', 'shared word two'),
  ('acme', 'r2', 3, 'log', 'error', timestamptz '2026-01-03T00:00:00Z', 'shared word three'),
  ('other', 'r1', 4, 'log', 'info', timestamptz '2026-01-04T00:00:00Z', 'shared word four')
) as e (org, run, n, channel, level, at, line);

create function pg_temp.found(p_rest text) returns text language plpgsql stable parallel unsafe as $function$
declare
  v_found text;
begin
  execute format(
    'select string_agg(coalesce(s.position::text, s.kind), '' '' order by s.nth)'
    ' from (select q.*, row_number() over () as nth from counterfoil.search_journal(%s) as q) as s', p_rest)
  into v_found;
  return v_found;
end
$function$;

select is(pg_temp.found($$'acme', 'shared'$$), '3 2 1 end', 'the latest first, and no other org''s');
select is(pg_temp.found($$'other', 'shared'$$), '4 end');
select is(pg_temp.found($$'acme', 'four'$$), 'end', 'a word that another org has finds nothing');
select is(pg_temp.found($$'acme', 'four', p_mode => 'substring'$$), 'end', 'nor does a substring');
select is(pg_temp.found($$'acme', null, 'r1'$$), '2 1 end', 'a run''s');
select is(pg_temp.found($$'acme', 'shared', 'r1', p_order => 'position'$$), '1 2 end', 'by position');
select is(pg_temp.found($$'acme', 'shared', null, 'progress'$$), '2 end', 'a channel''s');
select is(pg_temp.found($$'acme', p_level => 'error'$$), '3 end', 'a level''s');
select is(pg_temp.found($$'acme', 'shared', p_since => '2026-01-02Z'$$), '3 2 end', 'from a time on');
select is(pg_temp.found($$'acme', 'shared', p_until => '2026-01-02Z'$$), '1 end', 'before a time');
select is(pg_temp.found($$'acme', 'shared', 'r1', p_since => '2026-01-02Z', p_until => '2026-01-03Z'$$), '2 end', 'within a run too');

select pg_temp.raises($$ select * from counterfoil.search_journal(null, 'x') $$, 'RL001', 'p_org_id');
select pg_temp.raises($$ select * from counterfoil.search_journal('acme', 'x', p_limit => 0) $$, 'RL001', 'p_limit');
select pg_temp.raises($$ select * from counterfoil.search_journal('acme', 'x', p_mode => 'regex') $$, 'RL001', 'p_mode');
select pg_temp.raises($$ select * from counterfoil.search_journal('acme', 'x', p_order => 'position') $$, 'RL001', 'p_order');
select pg_temp.raises($$ select * from counterfoil.search_journal('acme', 'x', p_channel => 'sms') $$, 'RL001', 'p_channel');
select pg_temp.raises($$ select * from counterfoil.search_journal('acme', 'x', p_before => '{"at": 1}') $$, 'RL001', 'p_before');
select ok(
  has_function_privilege('counterfoil_reader', 'counterfoil.search_journal(text, text, text, text, jsonb, integer, text, timestamptz, timestamptz, text, text)', 'execute')
  and not has_function_privilege('counterfoil_worker', 'counterfoil.search_journal(text, text, text, text, jsonb, integer, text, timestamptz, timestamptz, text, text)', 'execute'),
  'readers may search, workers may not');

select * from finish();
rollback;
