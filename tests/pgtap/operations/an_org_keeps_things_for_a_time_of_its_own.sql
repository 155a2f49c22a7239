begin;
\ir ../setup.psql
\ir setup.psql
select plan(31);

-- Three orgs with the same: acme keeps everything shorter, keeper longer, plain as the settings say.
insert into counterfoil.run_journal (
  org_id, run_id, identity, channel, position, producer_attempt, occurred_at, line, content_digest, event_id, recorded_at, terms
)
select o, 'r', n::text, 'log', n, 1, now(), 'x', sha256(''), 'e', now() - n * interval '10 days', '{}'
from unnest(array['acme', 'keeper', 'plain']) as o cross join generate_series(1, 12) as n;
insert into counterfoil.step_receipts (org_id, key, status, run_id, created_at, claimed_at, updated_at, settled_at)
select o, n::text, 'completed', 'r', now(), now(), now(), now() - n * interval '10 days'
from unnest(array['acme', 'keeper', 'plain']) as o cross join generate_series(1, 12) as n;
insert into counterfoil.observations (
  org_id, run_id, attempt, node_id, invocation_seq, status, inputs_truncated, outputs_truncated, observed_at, updated_at
)
select o, 'r', 1, 'n', n, 'completed', false, false, now(), now() - n * interval '10 days'
from unnest(array['acme', 'keeper', 'plain']) as o cross join generate_series(1, 12) as n;
insert into counterfoil.ledgers (org_id, run_id, status, created_at, ended_at, updated_at)
select o, 'r' || n, 'failed', now(), now() - n * interval '100 days', now()
from unnest(array['acme', 'keeper', 'plain']) as o cross join generate_series(1, 5) as n;
insert into counterfoil.runs (
  org_id, run_id, status, play_id, play_name, release_lane, priority, root_run_id, launch_digest, created_at, available_at,
  max_attempts, ended_at, terminal_event_id
)
select o, 'r' || n, 'cancelled', 'p', 'p', 'default', 5, 'r' || n, sha256(''), now(), now(), 1, now() - n * interval '100 days', 't'
from unnest(array['acme', 'keeper', 'plain']) as o cross join generate_series(1, 5) as n;
insert into counterfoil.outbox (org_id, run_id, seq, event_id, event_type, lane, deferred, payload, delivery_key, created_at)
select o, 'r1', n, 'e' || n, case n when 1 then 'run.created' else 'runner.logs' end, 'lifecycle', false,
  '{"lines": ["text"]}', gen_random_uuid(), now()
from unnest(array['acme', 'keeper', 'plain']) as o cross join generate_series(1, 4) as n;
insert into counterfoil.deliveries (org_id, run_id, lane, first_seq, last_seq, outcome, lease_owner, delivered_at)
select o.org_id, o.run_id, 'lifecycle', o.seq, o.seq, 'delivered', 'me', now() - o.seq * interval '9 days'
from counterfoil.outbox as o;

select is(counterfoil.set_org_retention('acme', 'journal_retention', 20 * 86400), 1728000::bigint, 'what applies is answered');
select counterfoil.set_org_retention('keeper', 'journal_retention', 115 * 86400);
select counterfoil.set_org_retention('acme', 'receipt_retention', 20 * 86400);
select counterfoil.set_org_retention('keeper', 'receipt_retention', 115 * 86400);
select counterfoil.set_org_retention('acme', 'ledger_retention', 150 * 86400);
select counterfoil.set_org_retention('keeper', 'ledger_retention', 450 * 86400);
select counterfoil.set_org_retention('acme', 'log_retention', 3600);
select counterfoil.set_org_retention('acme', 'outbox_retention', 10 * 86400);
select counterfoil.set_org_retention('keeper', 'log_retention', 30 * 86400);
select counterfoil.set_org_retention('keeper', 'outbox_retention', 50 * 86400);

select is(
  counterfoil.health() -> 'retentionBacklog' -> 'journal', '{"count": 16, "atLeast": false}',
  'health counts by each org''s own time');

-- A batch is shared, and no org waits for another's.
select is(pg_temp.rows($$ select * from counterfoil.purge_journal(9) $$), '[{"entries": 7, "more": true}]', 'a batch of nine, three for each org');
select is(
  pg_temp.rows($$ select j.org_id as o, count(*) as n from counterfoil.run_journal as j group by j.org_id order by j.org_id $$),
  '[{"n": 9, "o": "acme"}, {"n": 11, "o": "keeper"}, {"n": 9, "o": "plain"}]', 'the org that has less past its time gives less');
select is((select bool_and(t.after_org_id = '' and not t.unfinished) from counterfoil.retention_turns as t), true, 'all orgs were looked at');
select is(pg_temp.rows($$ select * from counterfoil.purge_journal() $$), '[{"entries": 9, "more": false}]', 'then the rest');
select is(
  pg_temp.rows($$ select j.org_id as o, max(j.position) as n from counterfoil.run_journal as j group by j.org_id order by j.org_id $$),
  '[{"n": 1, "o": "acme"}, {"n": 11, "o": "keeper"}, {"n": 8, "o": "plain"}]', 'journal entries by each org''s own time');

select is(pg_temp.rows($$ select * from counterfoil.purge_receipts() $$), '[{"receipts": 16, "observations": 16, "more": false}]');
select is(
  pg_temp.rows($$ select s.org_id as o, count(*) as n from counterfoil.step_receipts as s group by s.org_id order by s.org_id $$),
  '[{"n": 1, "o": "acme"}, {"n": 11, "o": "keeper"}, {"n": 8, "o": "plain"}]', 'receipts by each org''s own time');
select is(
  pg_temp.rows($$ select s.org_id as o, count(*) as n from counterfoil.observations as s group by s.org_id order by s.org_id $$),
  '[{"n": 1, "o": "acme"}, {"n": 11, "o": "keeper"}, {"n": 8, "o": "plain"}]', 'and observations');

select is(pg_temp.rows($$ select * from counterfoil.purge_ledgers() $$), '[{"ledgers": 7, "events": 0, "more": false}]');
select is(
  pg_temp.rows($$ select l.org_id as o, count(*) as n from counterfoil.ledgers as l group by l.org_id order by l.org_id $$),
  '[{"n": 1, "o": "acme"}, {"n": 4, "o": "keeper"}, {"n": 3, "o": "plain"}]', 'ledgers by each org''s own time');
select is(pg_temp.rows($$ select * from counterfoil.purge_runs() $$), '[{"runs": 7, "more": false}]', 'and runs');

select is(
  pg_temp.rows($$ select * from counterfoil.purge_delivered(100) $$),
  '[{"logs_purged": 9, "facts_removed": 4, "more": false}]', 'log text and facts, too');
select is(
  pg_temp.rows($$ select o.org_id as o, o.seq as n, o.payload ? 'lines' as text from counterfoil.outbox as o where o.seq > 1 order by o.org_id, o.seq $$),
  '[{"n": 2, "o": "keeper", "text": true}, {"n": 3, "o": "keeper", "text": true}, {"n": 4, "o": "keeper", "text": false},
    {"n": 2, "o": "plain", "text": false}, {"n": 3, "o": "plain", "text": false}]',
  'by each org''s own time');

-- More orgs than a batch has rows: the next call goes on behind.
insert into counterfoil.step_receipts (org_id, key, status, run_id, created_at, claimed_at, updated_at, settled_at)
select 'z' || n, 'k', 'completed', 'r', now(), now(), now(), now() - interval '100 days' from generate_series(1, 3) as n;
select is(pg_temp.rows($$ select * from counterfoil.purge_receipts(2) $$), '[{"receipts": 2, "observations": 0, "more": true}]', 'two orgs');
select is((select t.after_org_id from counterfoil.retention_turns as t where t.kind = 'receipts'), 'z2', 'where the next call begins');
select is(pg_temp.rows($$ select * from counterfoil.purge_receipts(2) $$), '[{"receipts": 1, "observations": 0, "more": true}]', 'the third');
select is(pg_temp.rows($$ select * from counterfoil.purge_receipts(2) $$), '[{"receipts": 0, "observations": 0, "more": false}]', 'and a round that finds nothing');

-- Setting, taking back, and what is written down of it.
select is(
  pg_temp.rows($$ select r.org_id, r.name, r.seconds from counterfoil.list_org_retention('acme') as r limit 2 $$),
  '[{"name": "journal_retention", "org_id": "acme", "seconds": 1728000}, {"name": "ledger_retention", "org_id": "acme", "seconds": 12960000}]',
  'an org''s own values are listed');
select is((select count(*) from counterfoil.list_org_retention(null, 'acme', 'outbox_retention')), 6::bigint, 'those of all, from a place on');
select is((select count(*) from counterfoil.list_org_retention(p_limit => 3)), 3::bigint, 'so many');
select is(counterfoil.set_org_retention('acme', 'journal_retention', null), 7776000::bigint, 'null goes back to the setting');
select is(counterfoil.set_org_retention('acme', 'journal_retention', null), 7776000::bigint, 'and again');
select is(
  pg_temp.rows($$ select a.action, a.target, a.details from counterfoil.list_audit('acme') as a where a.target ->> 'setting' = 'journal_retention' order by a.recorded_at $$),
  '[{"action": "set_org_retention", "target": {"setting": "journal_retention"}, "details": {"after": 1728000, "before": null}},
    {"action": "set_org_retention", "target": {"setting": "journal_retention"}, "details": {"after": null, "before": 1728000}}]',
  'each change is in the org''s audit trail');
select pg_temp.raises($$ select counterfoil.set_org_retention('acme', 'journal_retention', 3599) $$, 'RL001', 'p_seconds');
select pg_temp.raises($$ select counterfoil.set_org_retention('acme', 'log_tail_limit', 7200) $$, 'RL001', 'p_name');
select pg_temp.raises($$ select counterfoil.set_org_retention('acme', null, 7200) $$, 'RL001', 'p_name');
select pg_temp.raises($$ select counterfoil.set_org_retention('', 'log_retention', 7200) $$, 'RL001', 'p_org_id');
select pg_temp.raises($$ select * from counterfoil.list_org_retention(p_limit => 0) $$, 'RL001', 'p_limit');
select ok(
  has_function_privilege('counterfoil_operator', 'counterfoil.set_org_retention(text, text, bigint)', 'execute')
  and not has_function_privilege('counterfoil_reader', 'counterfoil.set_org_retention(text, text, bigint)', 'execute'),
  'operators may set it, readers may not');

select * from finish();
rollback;
