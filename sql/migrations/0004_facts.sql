-- Facts: the outbox, the lanes in which facts wait for delivery, what went wrong, and what was delivered.

-- What retention leaves of a run's facts, so that positions are never given twice.
create table counterfoil.purged_facts (
    org_id text collate "C" not null,
    run_id text collate "C" not null,
    through_seq bigint not null,
    constraint purged_facts_pkey primary key (org_id, run_id),
    constraint purged_facts_run_fkey foreign key (org_id, run_id)
    references counterfoil.runs (org_id, run_id) on delete cascade,
    constraint purged_facts_through_positive check (through_seq >= 1)
);

comment on table counterfoil.purged_facts is
'Runs whose latest facts retention has removed while the run is kept: the next fact counts on from there.';
comment on column counterfoil.purged_facts.org_id is 'Tenant.';
comment on column counterfoil.purged_facts.run_id is 'Run whose facts were removed.';
comment on column counterfoil.purged_facts.through_seq is 'Position of the latest fact that was removed.';

-- What outbox and lanes may hold. PostgreSQL parses and plans a table's checks again in every statement that writes to
-- it, which was a quarter of the cost of an append: a session keeps the plan of a function, and of its expressions
-- a transaction prepares only those it comes to, so what is common comes first. The functions stand here, with the
-- tables, since a table's rows were checked by what its rule said when they were written.
create function counterfoil.is_possible_fact(
    p_seq bigint, p_event_id text, p_event_type text, p_lane text, p_payload jsonb
)
returns boolean
language plpgsql
immutable
parallel safe
called on null input
security invoker
set search_path = pg_catalog, pg_temp
as $function$
begin
    if length(p_event_id) not between 1 and 200 or jsonb_typeof(p_payload) <> 'object' or p_seq < 1 then
        return false;
    end if;
    if p_event_type in ('run.events', 'run.progress', 'step.receipt', 'runner.logs') then
        return p_seq >= 2 and p_lane in ('lifecycle', 'search');
    end if;
    return p_lane = 'lifecycle' and case p_event_type
        when 'run.created' then p_seq = 1
        when 'run.started' then p_seq = 2
        else
            p_seq >= 2
            and p_event_type in ('run.waiting', 'run.resumed', 'run.completed', 'run.failed', 'run.cancelled')
    end;
end
$function$;

comment on function counterfoil.is_possible_fact(bigint, text, text, text, jsonb) is
'Whether a row of outbox can be: a known type, in a lane that the type may wait in, run.created first, run.started second; an id with length; an object as payload. Private.';

revoke all on function counterfoil.is_possible_fact(bigint, text, text, text, jsonb) from public;

-- Neither facts nor their delivery log have a foreign key to runs. Their one writer holds the run's row or the lane's,
-- so the key would prove nothing, and its look-ups were a fifth of the cost of an append. A run is purged once it has
-- no fact left, and a fact goes together with its delivery.
create table counterfoil.outbox (
    org_id text collate "C" not null,
    run_id text collate "C" not null,
    seq bigint not null,
    event_id text collate "C" not null,
    event_type text collate "C" not null,
    lane text collate "C" not null,
    deferred boolean not null,
    payload jsonb not null,
    payload_digest bytea,
    delivery_key uuid not null,
    created_at timestamptz not null,
    constraint outbox_pkey primary key (org_id, run_id, seq),
    constraint outbox_event_id_key unique (org_id, event_id),
    constraint outbox_is_possible check (
        counterfoil.is_possible_fact(seq, event_id, event_type, lane, payload)
    )
) with (fillfactor = 95, autovacuum_vacuum_insert_scale_factor = 0.05);

-- A lane's facts in order, however many of the other lane lie between them.
create index outbox_lane_idx on counterfoil.outbox (org_id, run_id, lane, seq);
create unique index outbox_one_terminal_idx on counterfoil.outbox (org_id, run_id)
where event_type in ('run.completed', 'run.failed', 'run.cancelled');

comment on table counterfoil.outbox is
'Facts: what happened to a run, in the order of their positions. Rows are written once; only materialisation and log retention touch a payload again. What is delivered is what lies before its lane''s head.';
comment on column counterfoil.outbox.org_id is 'Tenant.';
comment on column counterfoil.outbox.run_id is 'Run the fact is about.';
comment on column counterfoil.outbox.seq is 'Position among the run''s facts: 1, 2, … without a gap, taken under the run''s row lock.';
comment on column counterfoil.outbox.event_id is 'Id of the fact, unique in the org; a repeat of it is the same fact or an error.';
comment on column counterfoil.outbox.event_type is 'What happened, such as run.progress.';
comment on column counterfoil.outbox.lane is 'lifecycle (goes to the ledger) or search (only to the journal).';
comment on column counterfoil.outbox.deferred is 'Whether the payload must be materialised before the fact can be delivered.';
comment on column counterfoil.outbox.payload is 'What the fact says, as a JSON object.';
comment on column counterfoil.outbox.payload_digest is 'sha256 of the payload as it was written, kept from the moment materialisation or retention rewrites it, to know a repeat; null while it is as written.';
comment on column counterfoil.outbox.delivery_key is 'Random identity of the fact in idempotency keys; fixed for its life and never reused, even if the event id is after retention.';
comment on column counterfoil.outbox.created_at is 'Database time of the write. Never an order: that is seq.';

create table counterfoil.lanes (
    org_id text collate "C" not null,
    run_id text collate "C" not null,
    lane text collate "C" not null,
    priority smallint not null,
    due_at timestamptz not null,
    head_seq bigint not null,
    tail_seq bigint not null,
    terminal_seq bigint,
    wait_seq bigint,
    failures integer not null default 0,
    blocked_at timestamptz,
    lease_generation bigint not null default 0,
    lease_owner text collate "C",
    lease_expires_at timestamptz,
    lease_through_seq bigint,
    receipt_key text collate "C",
    receipt_through_seq bigint,
    receipt_frozen_at timestamptz,
    receipt_piece_max_events integer,
    receipt_piece_max_bytes integer,
    constraint lanes_pkey primary key (org_id, run_id, lane, head_seq)
) with (
    fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
    autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0,
    autovacuum_analyze_threshold = 20000, vacuum_truncate = off
);

-- The row as a whole: one argument to parse in every statement, where sixteen cost as much as the rest of the check.
create function counterfoil.is_possible_lane(p_row counterfoil.lanes)
returns boolean
language plpgsql
immutable
parallel safe
called on null input
security invoker
set search_path = pg_catalog, pg_temp
as $function$
begin
    if
        p_row.lane not in ('lifecycle', 'search')
        or p_row.priority not between 0 and 3
        or p_row.failures < 0
        or p_row.head_seq not between 1 and p_row.tail_seq
    then
        return false;
    end if;
    -- Of the positions that there are, none lies outside of what is pending.
    if
        p_row.terminal_seq not between p_row.head_seq and p_row.tail_seq
        or p_row.wait_seq not between p_row.head_seq and p_row.tail_seq
    then
        return false;
    end if;
    if p_row.lease_owner is null and p_row.receipt_key is null then
        return num_nulls(
            p_row.lease_expires_at, p_row.lease_through_seq,
            p_row.receipt_through_seq, p_row.receipt_frozen_at, p_row.receipt_piece_max_events, p_row.receipt_piece_max_bytes
        ) = 6;
    end if;
    return
        num_nulls(p_row.lease_owner, p_row.lease_expires_at, p_row.lease_through_seq) in (0, 3)
        and (p_row.lease_owner is null or p_row.blocked_at is null)
        and (p_row.lease_through_seq between p_row.head_seq and p_row.tail_seq) is not false
        and num_nulls(
            p_row.receipt_key, p_row.receipt_through_seq, p_row.receipt_frozen_at, p_row.receipt_piece_max_events,
            p_row.receipt_piece_max_bytes
        ) in (0, 5)
        and (p_row.receipt_through_seq between p_row.head_seq and p_row.tail_seq) is not false;
end
$function$;

comment on function counterfoil.is_possible_lane(counterfoil.lanes) is
'Whether a row of lanes can be: a known lane and priority, positions between head and tail, lease and receipt whole or absent, no lease while blocked. Private.';

revoke all on function counterfoil.is_possible_lane(counterfoil.lanes) from public;

alter table counterfoil.lanes add constraint lanes_is_possible check (counterfoil.is_possible_lane(lanes));

create index lanes_ready_lifecycle_idx on counterfoil.lanes (priority, due_at)
where lane = 'lifecycle' and blocked_at is null;
create index lanes_ready_search_idx on counterfoil.lanes (priority, due_at)
where lane = 'search' and blocked_at is null;
-- For one org's claims. Neither kind of claim can be planned on the other's index: here the lane is a
-- parameter, which proves no predicate above; there no org is given, and only those two keep the order.
create index lanes_ready_by_org_idx on counterfoil.lanes (org_id, lane, priority, due_at)
where blocked_at is null;
create index lanes_blocked_idx on counterfoil.lanes (org_id, blocked_at) where blocked_at is not null;

comment on table counterfoil.lanes is
'One row per run and lane that has pending facts; none when all is delivered. Lease, retry and frozen receipt live here, so that a claim or an acknowledgement touches one small row and no fact. The lease is in no index. The head is in the key, so that a look-up from the newest passes over no row of what was delivered, even while an open snapshot keeps those from being cleaned away.';
comment on column counterfoil.lanes.org_id is 'Tenant.';
comment on column counterfoil.lanes.run_id is 'Run whose facts wait.';
comment on column counterfoil.lanes.lane is 'lifecycle or search.';
comment on column counterfoil.lanes.priority is '0 when run.created is pending, 1 a terminal, 2 a public wait, 3 anything else.';
comment on column counterfoil.lanes.due_at is 'When the head may be claimed: when it came to the front, or the end of its backoff.';
comment on column counterfoil.lanes.head_seq is 'Where the pending facts begin: every fact of the lane at or after it is pending, none before.';
comment on column counterfoil.lanes.tail_seq is 'Position of the last pending fact.';
comment on column counterfoil.lanes.terminal_seq is 'Position of the pending terminal; null for none.';
comment on column counterfoil.lanes.wait_seq is 'Position of the last pending public wait; null for none.';
comment on column counterfoil.lanes.failures is 'How many of the pending facts have a row in fact_failures; 0 spares the claim a look there.';
comment on column counterfoil.lanes.blocked_at is 'Since when the head is blocked and waits for an operator; null when it does not.';
comment on column counterfoil.lanes.lease_generation is 'Counts claims: the fencing number of the present lease.';
comment on column counterfoil.lanes.lease_owner is 'Dispatcher that holds the lane; null for none. A lease past its time holds nothing.';
comment on column counterfoil.lanes.lease_expires_at is 'Time at which the lease lapses.';
comment on column counterfoil.lanes.lease_through_seq is 'Last fact the lease covers; the first is the head.';
comment on column counterfoil.lanes.receipt_key is 'Idempotency key of the frozen receipt that starts at the head; null for none.';
comment on column counterfoil.lanes.receipt_through_seq is 'Last fact of the frozen receipt.';
comment on column counterfoil.lanes.receipt_frozen_at is 'Database time of the first freeze; later ones keep it.';
comment on column counterfoil.lanes.receipt_piece_max_events is 'Most events of one HTTP piece, as set at the freeze: the receipt is always cut at the same places.';
comment on column counterfoil.lanes.receipt_piece_max_bytes is 'Most bytes of one HTTP piece, as set at the freeze.';

create table counterfoil.fact_failures (
    org_id text collate "C" not null,
    run_id text collate "C" not null,
    seq bigint not null,
    lane text collate "C" not null,
    event_id text collate "C" not null,
    state text collate "C" not null,
    attempts integer not null,
    next_attempt_at timestamptz,
    blocked_at timestamptz,
    skipped_at timestamptz,
    skipped_by text,
    last_error jsonb not null,
    first_failed_at timestamptz not null,
    last_failed_at timestamptz not null,
    constraint fact_failures_pkey primary key (org_id, run_id, seq),
    constraint fact_failures_fact_fkey foreign key (org_id, run_id, seq)
    references counterfoil.outbox (org_id, run_id, seq) on delete cascade,
    constraint fact_failures_lane_is_known check (lane in ('lifecycle', 'search')),
    constraint fact_failures_state_is_known check (state in ('retrying', 'blocked', 'skipped')),
    constraint fact_failures_attempts_not_negative check (attempts >= 0),
    constraint fact_failures_retrying_has_time check ((state = 'retrying') = (next_attempt_at is not null)),
    constraint fact_failures_blocked_has_time check (state <> 'blocked' or blocked_at is not null),
    constraint fact_failures_skipped_has_time check ((state = 'skipped') = (skipped_at is not null)),
    constraint fact_failures_skip_is_signed check ((skipped_at is null) = (skipped_by is null))
);

create index fact_failures_blocked_idx on counterfoil.fact_failures (org_id, blocked_at, run_id, seq)
where state = 'blocked';

comment on table counterfoil.fact_failures is
'Pending facts whose delivery failed: retrying, blocked (the dead letter queue) or skipped by an operator. A row lives only while its fact is pending, so no fact is both delivered and failed.';
comment on column counterfoil.fact_failures.org_id is 'Tenant.';
comment on column counterfoil.fact_failures.run_id is 'Run of the fact.';
comment on column counterfoil.fact_failures.seq is 'Position of the fact.';
comment on column counterfoil.fact_failures.lane is 'Copy of the fact''s lane.';
comment on column counterfoil.fact_failures.event_id is 'Copy of the fact''s event id, for the operator''s list.';
comment on column counterfoil.fact_failures.state is 'retrying, blocked or skipped.';
comment on column counterfoil.fact_failures.attempts is 'Failed deliveries since the start of the policy; a replay starts it again.';
comment on column counterfoil.fact_failures.next_attempt_at is 'When a retrying fact is due again.';
comment on column counterfoil.fact_failures.blocked_at is 'When the fact was blocked; kept when it is skipped.';
comment on column counterfoil.fact_failures.skipped_at is 'When an operator skipped it; the delivery then passes over it.';
comment on column counterfoil.fact_failures.skipped_by is 'Database role that skipped it.';
comment on column counterfoil.fact_failures.last_error is 'Latest failure: message, code, status. Never a token or a payload.';
comment on column counterfoil.fact_failures.first_failed_at is 'Database time of the first failure.';
comment on column counterfoil.fact_failures.last_failed_at is 'Database time of the latest failure.';

create table counterfoil.deliveries (
    org_id text collate "C" not null,
    run_id text collate "C" not null,
    lane text collate "C" not null,
    first_seq bigint not null,
    last_seq bigint not null,
    outcome text collate "C" not null,
    idempotency_key text collate "C",
    lease_owner text collate "C" not null,
    frozen_at timestamptz,
    delivered_at timestamptz not null,
    logs_purged_at timestamptz,
    constraint deliveries_pkey primary key (org_id, run_id, lane, first_seq),
    constraint deliveries_lane_is_known check (lane in ('lifecycle', 'search')),
    constraint deliveries_outcome_is_known check (outcome in ('delivered', 'skipped')),
    constraint deliveries_first_before_last check (first_seq between 1 and last_seq),
    constraint deliveries_frozen_has_key check (frozen_at is null or idempotency_key is not null)
) with (fillfactor = 90, autovacuum_vacuum_insert_scale_factor = 0.05);

-- Retention, org by org, since each may keep its own for a time of its own.
create index deliveries_logs_due_idx on counterfoil.deliveries (org_id, delivered_at) where logs_purged_at is null;
-- Partial, though it holds every row: so that no look-up by key can take it for the primary key.
create index deliveries_delivered_idx on counterfoil.deliveries (org_id, delivered_at)
where delivered_at > '-infinity';

comment on table counterfoil.deliveries is
'The delivery log: one row per acknowledged delivery, or per fact that an operator skipped. Written once when the lane''s head moves past the facts.';
comment on column counterfoil.deliveries.org_id is 'Tenant.';
comment on column counterfoil.deliveries.run_id is 'Run of the facts.';
comment on column counterfoil.deliveries.lane is 'Lane of the facts.';
comment on column counterfoil.deliveries.first_seq is 'Where the delivery begins: its facts are those of the lane from here to last_seq.';
comment on column counterfoil.deliveries.last_seq is 'Last fact of the delivery.';
comment on column counterfoil.deliveries.outcome is 'delivered, or skipped by an operator (see operator_audit).';
comment on column counterfoil.deliveries.idempotency_key is 'Receipt under which the facts were delivered; null where nothing went over HTTP.';
comment on column counterfoil.deliveries.lease_owner is 'Dispatcher that acknowledged, or the operator that skipped.';
comment on column counterfoil.deliveries.frozen_at is 'When the receipt was frozen; null when it was not.';
comment on column counterfoil.deliveries.delivered_at is 'Database time of the acknowledgement. Retention counts from it.';
comment on column counterfoil.deliveries.logs_purged_at is 'When retention took the log text out of the facts.';
