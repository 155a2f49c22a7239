-- Ledger: the receiver's side. It refers to no table of the sender, so that it can live in another database.

create table counterfoil.ledgers (
    org_id text collate "C" not null,
    run_id text collate "C" not null,
    status text collate "C" not null,
    play_id text collate "C",
    play_name text collate "C",
    launch jsonb,
    last_position bigint not null default 0,
    event_count bigint not null default 0,
    last_seq bigint not null default 0,
    last_item integer not null default 0,
    created_at timestamptz not null,
    started_at timestamptz,
    ended_at timestamptz,
    updated_at timestamptz not null,
    progress jsonb,
    waiting jsonb,
    result_summary jsonb,
    error jsonb,
    constraint ledgers_pkey primary key (org_id, run_id),
    constraint ledgers_status_is_known check (
        status in ('queued', 'running', 'waiting', 'completed', 'failed', 'cancelled')
    ),
    constraint ledgers_positions_have_no_gap check (last_position = event_count),
    constraint ledgers_ended_has_time check (
        (status in ('completed', 'failed', 'cancelled')) = (ended_at is not null)
    )
) with (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000);

-- Partial, though it holds every row: so that no look-up by (org_id, run_id) can take it for the primary key.
create index ledgers_recent_idx on counterfoil.ledgers (org_id, created_at desc, run_id desc)
where created_at > '-infinity';
-- Retention, org by org, the first to end first.
create index ledgers_ended_idx on counterfoil.ledgers (org_id, ended_at) where ended_at is not null;

comment on table counterfoil.ledgers is
'A run as the receiver knows it: the snapshot that its events add up to. Its row lock orders the appends.';
comment on column counterfoil.ledgers.org_id is 'Tenant.';
comment on column counterfoil.ledgers.run_id is 'Run the ledger is of.';
comment on column counterfoil.ledgers.status is 'Status according to the events appended so far.';
comment on column counterfoil.ledgers.play_id is 'Id of the play, once known.';
comment on column counterfoil.ledgers.play_name is 'Name of the play, once known.';
comment on column counterfoil.ledgers.launch is 'What the started endpoint was told of the launch, without credentials.';
comment on column counterfoil.ledgers.last_position is 'Position of the last event.';
comment on column counterfoil.ledgers.event_count is 'Number of events. Unique positions whose highest equals their number leave no gap.';
comment on column counterfoil.ledgers.last_seq is 'Fact of the last event, by its position among the run''s facts; 0 before the first. What is not behind it is known already.';
comment on column counterfoil.ledgers.last_item is 'Which of that fact''s events was the last.';
comment on column counterfoil.ledgers.created_at is 'When the run was admitted, from its first event.';
comment on column counterfoil.ledgers.started_at is 'When the run started, from its event.';
comment on column counterfoil.ledgers.ended_at is 'When the run ended, from its terminal event.';
comment on column counterfoil.ledgers.updated_at is 'Database time of the latest append.';
comment on column counterfoil.ledgers.progress is 'Data of the latest progress event.';
comment on column counterfoil.ledgers.waiting is 'Data of the wait the run is in; null when it does not wait.';
comment on column counterfoil.ledgers.result_summary is 'Summary that came with the terminal event.';
comment on column counterfoil.ledgers.error is 'Error that came with the terminal event.';

create table counterfoil.ledger_appends (
    org_id text collate "C" not null,
    run_id text collate "C" not null,
    idempotency_key text collate "C" not null,
    chunk integer not null,
    chunk_count integer not null,
    events_digest bytea not null,
    events integer not null,
    first_position bigint not null,
    last_position bigint not null,
    lease_owner text collate "C" not null,
    appended_at timestamptz not null,
    constraint ledger_appends_pkey primary key (org_id, run_id, idempotency_key, chunk),
    constraint ledger_appends_ledger_fkey foreign key (org_id, run_id)
    references counterfoil.ledgers (org_id, run_id) on delete cascade,
    constraint ledger_appends_chunk_in_range check (chunk between 1 and chunk_count),
    constraint ledger_appends_positions_in_order check (
        first_position >= 1 and last_position >= first_position - 1
    ),
    constraint ledger_appends_events_not_negative check (events >= last_position - first_position + 1)
);

comment on table counterfoil.ledger_appends is
'Receipts the ledger has taken: one row per key and chunk. The same key again answers the same and writes nothing.';
comment on column counterfoil.ledger_appends.org_id is 'Tenant.';
comment on column counterfoil.ledger_appends.run_id is 'Run of the receipt.';
comment on column counterfoil.ledger_appends.idempotency_key is 'Key of the delivery receipt.';
comment on column counterfoil.ledger_appends.chunk is 'Which piece of the delivery, from 1.';
comment on column counterfoil.ledger_appends.chunk_count is 'How many pieces the delivery has.';
comment on column counterfoil.ledger_appends.events_digest is 'sha256 of the piece''s events, to refuse other content under the same key.';
comment on column counterfoil.ledger_appends.events is 'How many events the piece held, those included that the ledger had already.';
comment on column counterfoil.ledger_appends.first_position is 'Position of the first event that the piece added.';
comment on column counterfoil.ledger_appends.last_position is 'Position of the last one; one less than the first when the piece added none.';
comment on column counterfoil.ledger_appends.lease_owner is 'Dispatcher whose delivery it was.';
comment on column counterfoil.ledger_appends.appended_at is 'Database time of the append.';

create table counterfoil.ledger_events (
    org_id text collate "C" not null,
    run_id text collate "C" not null,
    position bigint not null,
    event_type text collate "C" not null,
    event_id text collate "C" not null,
    item integer not null,
    occurred_at timestamptz not null,
    event jsonb not null,
    appended_at timestamptz not null,
    constraint ledger_events_pkey primary key (org_id, run_id, position),
    constraint ledger_events_source_key unique (org_id, run_id, event_id, item),
    constraint ledger_events_ledger_fkey foreign key (org_id, run_id)
    references counterfoil.ledgers (org_id, run_id) on delete cascade,
    constraint ledger_events_position_is_positive check (position >= 1),
    constraint ledger_events_item_not_negative check (item >= 0),
    -- One way only: an operator may have skipped a start fact that could not be delivered.
    constraint ledger_events_created_is_first check (event_type <> 'run.created' or position = 1),
    constraint ledger_events_started_is_second check (event_type <> 'run.started' or position <= 2),
    constraint ledger_events_event_is_object check (jsonb_typeof(event) = 'object')
) with (fillfactor = 100, autovacuum_vacuum_insert_scale_factor = 0.05);

create unique index ledger_events_one_terminal_idx on counterfoil.ledger_events (org_id, run_id)
where event_type in ('run.completed', 'run.failed', 'run.cancelled');

comment on table counterfoil.ledger_events is
'The ordered, deduplicated history of each run. Written once.';
comment on column counterfoil.ledger_events.org_id is 'Tenant.';
comment on column counterfoil.ledger_events.run_id is 'Run the event is of.';
comment on column counterfoil.ledger_events.position is 'Place in the run''s history: 1, 2, … without a gap.';
comment on column counterfoil.ledger_events.event_type is 'Type of the event, such as run.progress or log.appended.';
comment on column counterfoil.ledger_events.event_id is 'Event id of the fact it was projected from.';
comment on column counterfoil.ledger_events.item is 'Which of that fact''s events, from 0.';
comment on column counterfoil.ledger_events.occurred_at is 'When it happened, as the fact says.';
comment on column counterfoil.ledger_events.event is 'The whole event as projected.';
comment on column counterfoil.ledger_events.appended_at is 'Database time of the append.';
