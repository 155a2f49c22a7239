begin;
\ir ../setup.psql
\ir setup.psql
select plan(37);

insert into counterfoil.runs (
  org_id, run_id, status, play_id, play_name, release_lane, priority, root_run_id, launch_digest, created_at, available_at,
  max_attempts, attempt, started_at, ended_at, terminal_event_id, error, result_summary
)
select r.org, r.run, r.status, 'p', r.play, 'default', 5, r.run, sha256(''), r.at, r.at, 1,
  case r.status when 'queued' then 0 else 1 end, case when r.status <> 'queued' then r.at end,
  case when r.status in ('failed', 'completed') then r.at end, case when r.status in ('failed', 'completed') then 't' end,
  r.error, r.summary
from (values
  ('acme', 'r1', 'queued', 'import', timestamptz '2026-01-01Z', null::jsonb, null::jsonb),
  ('acme', 'r2', 'failed', 'import', timestamptz '2026-01-02Z', '{"message": "Disk \"sda\" is full", "code": "disk"}', null),
  ('acme', 'r3', 'completed', 'export', timestamptz '2026-01-03Z', null, '{"rows": 42, "note": "Größe geprüft"}'),
  ('acme', 'r4', 'failed', 'export', timestamptz '2026-01-04Z', '{"message": "Zeitüberschreitung", "code": "timeout"}', null),
  ('acme', 'r5', 'running', 'import', timestamptz '2026-01-04Z', null, null),
  ('other', 'r6', 'failed', 'import', timestamptz '2026-01-05Z', '{"message": "disk"}', null)
) as r (org, run, status, play, at, error, summary);

create function pg_temp.found(p_rest text) returns text language plpgsql stable parallel unsafe as $function$
declare
  v_found text;
begin
  execute format(
    'select string_agg(coalesce(s.run_id, s.kind), '' '' order by s.nth)'
    ' from (select q.*, row_number() over () as nth from counterfoil.search_runs(%s) as q) as s', p_rest)
  into v_found;
  return v_found;
end
$function$;

select is(pg_temp.found(q.arguments), q.found, q.arguments)
from (values
  ($$'acme'$$, 'r5 r4 r3 r2 r1 end'),
  ($$'other'$$, 'r6 end'),
  ($$'nobody'$$, 'end'),
  ($$'acme', 'failed'$$, 'r4 r2 end'),
  ($$'acme', 'queued'$$, 'r1 end'),
  ($$'acme', p_play_name => 'import'$$, 'r5 r2 r1 end'),
  ($$'acme', 'failed', 'import'$$, 'r2 end'),
  ($$'acme', p_error => 'disk'$$, 'r2 end'),
  ($$'acme', p_error => 'SDA" is'$$, 'r2 end'),
  ($$'acme', p_error => 'zeitÜberschr'$$, 'r4 end'),
  ($$'acme', p_error => 'nothing'$$, 'end'),
  ($$'acme', p_error => '%'$$, 'end'),
  ($$'acme', 'completed', p_error => 'disk'$$, 'end'),
  ($$'acme', p_query => 'PORT'$$, 'r5 r4 r3 r2 r1 end'),
  ($$'acme', p_query => 'r3'$$, 'r3 end'),
  ($$'acme', p_query => 'größe'$$, 'r3 end'),
  ($$'acme', p_query => '"sda"'$$, 'r2 end'),
  ($$'acme', p_query => 'full', p_error => 'timeout'$$, 'end'),
  ($$'acme', p_query => '  '$$, 'r5 r4 r3 r2 r1 end'),
  ($$'acme', p_since => '2026-01-03Z'$$, 'r5 r4 r3 end'),
  ($$'acme', p_until => '2026-01-03Z'$$, 'r2 r1 end'),
  ($$'acme', 'failed', p_since => '2026-01-02Z', p_until => '2026-01-04Z'$$, 'r2 end'),
  ($$'acme', p_limit => 2$$, 'r5 r4 more'),
  ($$'acme', 'failed', p_limit => 1$$, 'r4 more'),
  ($$'acme', p_before => '{"at": "2026-01-04T00:00:00Z", "runId": "r4"}'$$, 'r3 r2 r1 end'),
  ($$'acme', p_until => '2026-01-02Z', p_before => '{"at": "2026-01-04T00:00:00Z", "runId": "r4"}'$$, 'r1 end')
) as q (arguments, found);
select is(
  (select s.run ->> 'error' from counterfoil.search_runs('acme', 'failed', p_limit => 1) as s where s.kind = 'run'),
  '{"code": "timeout", "message": "Zeitüberschreitung"}', 'a run comes as its document');

-- Page by page, while runs arrive.
create temporary table pages (nth integer, run_id text, cursor jsonb);
insert into pages select 1, s.run_id, s.cursor from counterfoil.search_runs('acme', p_limit => 2) as s;
insert into counterfoil.runs (
  org_id, run_id, status, play_id, play_name, release_lane, priority, root_run_id, launch_digest, created_at, available_at, max_attempts
) values ('acme', 'late', 'queued', 'p', 'import', 'default', 5, 'late', sha256(''), '2026-02-01Z', now(), 1);
insert into pages select 2, s.run_id, s.cursor
from counterfoil.search_runs('acme', p_limit => 2, p_before => (select p.cursor from pages as p where p.run_id is null)) as s;
insert into pages select 3, s.run_id, s.cursor
from counterfoil.search_runs('acme', p_limit => 2, p_before => (select p.cursor from pages as p where p.run_id is null and p.nth = 2)) as s;
select is(
  (select string_agg(p.run_id, ' ' order by p.nth, p.run_id desc) from pages as p where p.run_id is not null), 'r5 r4 r3 r2 r1',
  'what was there comes once, what arrives later does not come between');

-- A search that finds nothing looks at so many and says so.
insert into counterfoil.runs (
  org_id, run_id, status, play_id, play_name, release_lane, priority, root_run_id, launch_digest, created_at, available_at, max_attempts
)
select 'many', 'm' || n, 'queued', 'p', 'import', 'default', 5, 'm' || n, sha256(''), '2026-02-01Z', now(), 1 from generate_series(1, 5001) as n;
select is(pg_temp.found($$'many', p_query => 'nowhere'$$), 'more', 'a page without a run, and a place to go on from');
select is(
  (select string_agg(n.kind, ' ') from counterfoil.search_runs('many', p_query => 'nowhere', p_before =>
    (select s.cursor from counterfoil.search_runs('many', p_query => 'nowhere') as s)) as n),
  'end', 'where the rest is looked at');
select is(pg_temp.found($$'many', p_error => 'x'$$), 'end', 'runs without an error are not looked at for one');

select pg_temp.raises($$ select * from counterfoil.search_runs('') $$, 'RL001', 'p_org_id');
select pg_temp.raises($$ select * from counterfoil.search_runs('acme', 'done') $$, 'RL001', 'p_status');
select pg_temp.raises($$ select * from counterfoil.search_runs('acme', p_limit => 1001) $$, 'RL001', 'p_limit');
select pg_temp.raises($$ select * from counterfoil.search_runs('acme', p_before => '{"at": "x", "runId": "r"}') $$, 'RL001', 'p_before');
select pg_temp.raises($$ select * from counterfoil.search_runs('acme', p_before => '[]') $$, 'RL001', 'p_before');
select ok(
  has_function_privilege(
    'counterfoil_reader', 'counterfoil.search_runs(text, text, text, text, text, timestamptz, timestamptz, jsonb, integer)', 'execute')
  and not has_function_privilege(
    'counterfoil_worker', 'counterfoil.search_runs(text, text, text, text, text, timestamptz, timestamptz, jsonb, integer)', 'execute'),
  'readers may search, workers may not');

select * from finish();
rollback;
