begin;
\ir ../setup.psql
\ir setup.psql
select plan(14);

-- Plans are made on empty tables, where every index looks alike.
select lives_ok($$ select counterfoil.maintain() from generate_series(1, 6) $$);

-- Much that is kept, of an org that keeps it long and of one that does not; of that one a little is past its time.
insert into counterfoil.org_retention (org_id, name, seconds, changed_at, changed_by)
select 'keeper', s.name, 3155760000, now(), 'me' from counterfoil.settings as s
where s.name in ('log_retention', 'outbox_retention', 'journal_retention', 'ledger_retention', 'receipt_retention');
create temporary table things as
select o.org_id, n, case when o.org_id = 'keeper' then now() - interval '20 years' when n <= 10 then now() - interval '2 years' else now() end as at
from (values ('acme'), ('keeper'), ('zeta')) as o (org_id) cross join generate_series(1, 2000) as n;

insert into counterfoil.run_journal (
  org_id, run_id, identity, channel, position, producer_attempt, occurred_at, line, content_digest, event_id, recorded_at, terms
)
select t.org_id, 'r', t.n::text, 'log', t.n, 1, now(), 'x', sha256(''), 'e', t.at, '{}' from things as t;
insert into counterfoil.step_receipts (org_id, key, status, run_id, created_at, claimed_at, updated_at, settled_at)
select t.org_id, t.n::text, 'completed', 'r', now(), now(), now(), t.at from things as t;
insert into counterfoil.observations (
  org_id, run_id, attempt, node_id, invocation_seq, status, inputs_truncated, outputs_truncated, observed_at, updated_at
)
select t.org_id, 'r', 1, 'n', t.n, 'completed', false, false, now(), t.at from things as t;
insert into counterfoil.ledgers (org_id, run_id, status, created_at, ended_at, updated_at)
select t.org_id, 'r' || t.n, 'failed', now(), t.at, now() from things as t;
insert into counterfoil.runs (
  org_id, run_id, status, play_id, play_name, release_lane, priority, root_run_id, launch_digest, created_at, available_at,
  max_attempts, ended_at, terminal_event_id
)
select t.org_id, 'r' || t.n, 'cancelled', 'p', 'p', 'default', 5, 'r' || t.n, sha256(''), now(), now(), 1, t.at, 't' from things as t;
insert into counterfoil.runs (
  org_id, run_id, status, play_id, play_name, release_lane, priority, root_run_id, launch_digest, created_at, available_at, max_attempts
)
select distinct t.org_id, 'f', 'queued', 'p', 'p', 'default', 5, 'f', sha256(''), now(), now(), 1 from things as t;
insert into counterfoil.outbox (org_id, run_id, seq, event_id, event_type, lane, deferred, payload, delivery_key, created_at)
select t.org_id, 'f', t.n + 2, 'e' || t.n, 'run.progress', 'lifecycle', false, '{}', gen_random_uuid(), now() from things as t;
insert into counterfoil.deliveries (org_id, run_id, lane, first_seq, last_seq, outcome, lease_owner, delivered_at)
select t.org_id, 'f', 'lifecycle', t.n + 2, t.n + 2, 'delivered', 'me', t.at from things as t;

insert into counterfoil.workers (worker, release_lane, plays, first_seen_at, last_seen_at)
select 'w' || n, 'default', '{}', now() - interval '1 year', now() - n * interval '12 hours' from generate_series(0, 5) as n;
insert into counterfoil.listeners (listener, queue, asleep_until)
select 'l' || n, 'search', now() - n * interval '12 hours' from generate_series(0, 3) as n;

create temporary table read_before as
select s.relname, s.seq_tup_read + s.idx_tup_fetch as tuples from pg_stat_xact_user_tables as s;
select is(
  counterfoil.maintain() - array['schedulesFired', 'recovered', 'tableAnalyzed', 'factRetentionReady', 'more', 'ledgerEventsRemoved'],
  '{"deliveriesStripped": 20, "factsRemoved": 20, "journalEntriesRemoved": 20, "receiptsRemoved": 20, "observationsRemoved": 20,
    "ledgersRemoved": 20, "runsRemoved": 20, "processesForgotten": 6}',
  'ten of each kind of each of the two orgs, and workers and listeners that were silent for a day');
select cmp_ok(s.seq_tup_read + s.idx_tup_fetch - b.tuples, '<=', 200::bigint, s.relname || ': little more is read than is removed')
from pg_stat_xact_user_tables as s
inner join read_before as b on b.relname = s.relname
where s.relname in ('run_journal', 'step_receipts', 'observations', 'ledgers', 'outbox', 'deliveries', 'runs')
order by s.relname;

select is((counterfoil.maintain() ->> 'more')::boolean, false, 'and then there is no more');
select cmp_ok((select count(*) from counterfoil.oldest_of_orgs('runs', '', 500)), '=', 3::bigint, 'each org is looked at once');
select is(
  pg_temp.rows($$ select o.org_id from counterfoil.oldest_of_orgs('journal', 'acme', 1) as o $$), '[{"org_id": "keeper"}]',
  'from a place on, so many');
select is((select count(*) from counterfoil.oldest_of_orgs('none', '', 5)), 0::bigint, 'of no kind there is nothing');
select is(counterfoil.health() #> '{retentionBacklog,journal,count}', '0', 'health sees none that is past its time');

select * from finish();
rollback;
