-- Journal: the canonical, searchable lines of every run, once per origin identity.

create table counterfoil.run_journal (
    org_id text collate "C" not null,
    run_id text collate "C" not null,
    identity text collate "C" not null,
    channel text collate "C" not null,
    position bigint not null,
    producer_attempt integer not null,
    entry_id text collate "C",
    level text collate "C",
    occurred_at timestamptz not null,
    line text not null,
    context jsonb,
    details jsonb,
    content_digest bytea not null,
    event_id text collate "C" not null,
    recorded_at timestamptz not null,
    terms bigint[] not null,
    constraint run_journal_pkey primary key (org_id, run_id, identity),
    constraint run_journal_position_key unique (org_id, run_id, position, channel),
    constraint run_journal_channel_is_known check (channel in ('log', 'progress', 'receipt')),
    constraint run_journal_position_is_positive check (position >= 1),
    constraint run_journal_attempt_not_negative check (producer_attempt >= 0),
    constraint run_journal_occurred_at_is_finite check (isfinite(occurred_at))
) with (
    fillfactor = 100, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.05,
    autovacuum_analyze_scale_factor = 0.02
);

-- Partial, though it holds every row: no look-up of an entry by its key can take it for the primary key.
create index run_journal_recent_idx on counterfoil.run_journal (org_id, occurred_at, run_id, channel, position)
where occurred_at > '-infinity';
-- The terms are hashes that begin with the org: a word leads to the org's own entries and to no other's.
create index run_journal_terms_idx on counterfoil.run_journal using gin (terms)
with (gin_pending_list_limit = 512);
create index run_journal_retention_idx on counterfoil.run_journal (org_id, recorded_at)
where recorded_at > '-infinity';

comment on table counterfoil.run_journal is
'Canonical journal: log lines, progress and receipt events of runs, once per origin identity, for reading and search.';
comment on column counterfoil.run_journal.org_id is 'Tenant.';
comment on column counterfoil.run_journal.run_id is 'Run the entry is of.';
comment on column counterfoil.run_journal.identity is 'What makes the entry itself: the id it got at its origin, or producer attempt, channel and position there.';
comment on column counterfoil.run_journal.channel is 'log, progress or receipt.';
comment on column counterfoil.run_journal.position is 'Place among the run''s entries of its channel; grows with the facts, with gaps.';
comment on column counterfoil.run_journal.producer_attempt is 'Attempt that produced the entry; 0 where none did.';
comment on column counterfoil.run_journal.entry_id is 'Id given at the origin; null for positional identity.';
comment on column counterfoil.run_journal.level is 'Log level, such as info or error; null where none was given.';
comment on column counterfoil.run_journal.occurred_at is 'When it happened, as far as its producer knows.';
comment on column counterfoil.run_journal.line is 'Text of the entry.';
comment on column counterfoil.run_journal.context is 'Context that came with a log line.';
comment on column counterfoil.run_journal.details is 'Structured content of a progress or receipt event.';
comment on column counterfoil.run_journal.content_digest is 'sha256 of the content: the same identity with another digest is refused.';
comment on column counterfoil.run_journal.event_id is 'Fact that brought the entry.';
comment on column counterfoil.run_journal.recorded_at is 'Database time of the indexing. Retention counts from it.';
comment on column counterfoil.run_journal.terms is 'What the entry can be found by: hashes of org and word, and of org and run, channel, level, day and hour.';
