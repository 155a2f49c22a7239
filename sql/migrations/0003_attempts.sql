-- Attempts: leased tries at executing a run, the waits of its play, and the signals that end them.

create table counterfoil.attempts (
    org_id text collate "C" not null,
    run_id text collate "C" not null,
    attempt integer not null,
    status text collate "C" not null,
    worker text collate "C" not null,
    release_lane text collate "C" not null,
    lease_id text collate "C" not null,
    lease_expires_at timestamptz,
    claims integer not null default 1,
    claimed_at timestamptz not null,
    heartbeat_at timestamptz not null,
    timeout_at timestamptz,
    ended_at timestamptz,
    error jsonb,
    answer jsonb,
    answer_digest bytea,
    runner_terminal jsonb,
    runner_terminal_status text collate "C",
    runner_terminal_at timestamptz,
    crash_diagnostic jsonb,
    constraint attempts_pkey primary key (org_id, run_id, attempt),
    constraint attempts_run_fkey foreign key (org_id, run_id)
    references counterfoil.runs (org_id, run_id) on delete cascade,
    constraint attempts_number_is_positive check (attempt >= 1),
    constraint attempts_status_is_known check (
        status in ('running', 'waiting', 'completed', 'failed', 'lost', 'cancelled')
    ),
    constraint attempts_lease_has_owner check (length(worker) between 1 and 200 and lease_id <> ''),
    constraint attempts_running_means_leased check ((status = 'running') = (lease_expires_at is not null)),
    constraint attempts_ended_has_time check (
        (status in ('completed', 'failed', 'lost', 'cancelled')) = (ended_at is not null)
    ),
    constraint attempts_answer_has_digest check ((answer is null) = (answer_digest is null)),
    constraint attempts_answer_needs_end check (answer is null or ended_at is not null),
    constraint attempts_runner_terminal_is_whole check (
        num_nulls(runner_terminal, runner_terminal_status, runner_terminal_at) in (0, 3)
    ),
    constraint attempts_runner_terminal_is_known check (
        runner_terminal_status in ('completed', 'failed', 'suspended')
    )
) with (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000);

create unique index attempts_one_open_idx on counterfoil.attempts (org_id, run_id)
where status in ('running', 'waiting');
-- Whoever has nothing to do asks at each poll whether a lease has lapsed, and must not read all that run. Each heartbeat
-- writes an entry: a few times a minute for an attempt. Queries that want it say > '-infinity': else a plan made while the
-- table is small would prove one lease by reading all that are live.
create index attempts_lapsing_idx on counterfoil.attempts (release_lane, lease_expires_at)
where lease_expires_at > '-infinity';

comment on table counterfoil.attempts is
'Leased tries at executing a run.';
comment on column counterfoil.attempts.org_id is 'Tenant.';
comment on column counterfoil.attempts.run_id is 'Run that is tried.';
comment on column counterfoil.attempts.attempt is 'Number of the try: 1, 2, …';
comment on column counterfoil.attempts.status is 'running (leased), waiting (suspended, continues later), completed, failed, lost (its lease ran out) or cancelled.';
comment on column counterfoil.attempts.worker is 'Worker that holds or last held the lease.';
comment on column counterfoil.attempts.release_lane is 'Copy of the run''s release lane, for recovery.';
comment on column counterfoil.attempts.lease_id is 'Fencing token of the present or last claim; every write of the holder proves it.';
comment on column counterfoil.attempts.lease_expires_at is 'Time at which the lease lapses; null when nobody holds it.';
comment on column counterfoil.attempts.claims is 'How often the attempt was claimed: once, and again after each wait.';
comment on column counterfoil.attempts.claimed_at is 'Database time of the latest claim.';
comment on column counterfoil.attempts.heartbeat_at is 'Database time of the latest claim or heartbeat.';
comment on column counterfoil.attempts.timeout_at is 'Time at which the attempt is taken from its holder whatever its heartbeats; null for none.';
comment on column counterfoil.attempts.ended_at is 'Database time of the attempt''s end.';
comment on column counterfoil.attempts.error is 'Error that ended the attempt: message, type, code.';
comment on column counterfoil.attempts.answer is 'What the accepted completion or failure answered, so that a repeat answers the same.';
comment on column counterfoil.attempts.answer_digest is 'sha256 of the accepted completion or failure, to tell a repeat from another one.';
comment on column counterfoil.attempts.runner_terminal is 'Terminal that a detached runner recorded itself.';
comment on column counterfoil.attempts.runner_terminal_status is 'completed, failed or suspended (resumable).';
comment on column counterfoil.attempts.runner_terminal_at is 'Database time at which the runner''s terminal was accepted.';
comment on column counterfoil.attempts.crash_diagnostic is 'What is known about a crashed sandbox.';

create table counterfoil.run_signals (
    org_id text collate "C" not null,
    run_id text collate "C" not null,
    signal_id text collate "C" not null,
    event_name text collate "C" not null,
    payload jsonb,
    received_at timestamptz not null,
    consumed_at timestamptz,
    constraint run_signals_pkey primary key (org_id, run_id, signal_id),
    constraint run_signals_run_fkey foreign key (org_id, run_id)
    references counterfoil.runs (org_id, run_id) on delete cascade
);

-- No fourth id, for the reason given at run_queue_ready_idx.
create index run_signals_unconsumed_idx on counterfoil.run_signals (
    org_id, run_id, event_name, received_at
) where consumed_at is null;

comment on table counterfoil.run_signals is
'Resumes sent to a run. One that comes before its wait stays here until the wait takes it.';
comment on column counterfoil.run_signals.org_id is 'Tenant.';
comment on column counterfoil.run_signals.run_id is 'Run the resume is for.';
comment on column counterfoil.run_signals.signal_id is 'Id chosen by the sender; the same id is the same resume.';
comment on column counterfoil.run_signals.event_name is 'Name of the event the resume brings; empty for an unnamed resume.';
comment on column counterfoil.run_signals.payload is 'What the resume carries to the play.';
comment on column counterfoil.run_signals.received_at is 'Database time of arrival.';
comment on column counterfoil.run_signals.consumed_at is 'Database time at which a wait took it; null while none has.';

create table counterfoil.run_waits (
    org_id text collate "C" not null,
    run_id text collate "C" not null,
    wait_id text collate "C" not null,
    event_name text collate "C" not null,
    reason text,
    began_at timestamptz not null,
    wake_at timestamptz,
    ended_at timestamptz,
    outcome text collate "C",
    signal_id text collate "C",
    constraint run_waits_pkey primary key (org_id, run_id, wait_id),
    constraint run_waits_run_fkey foreign key (org_id, run_id)
    references counterfoil.runs (org_id, run_id) on delete cascade,
    constraint run_waits_signal_fkey foreign key (org_id, run_id, signal_id)
    references counterfoil.run_signals (org_id, run_id, signal_id) on delete cascade,
    constraint run_waits_outcome_is_known check (outcome in ('resumed', 'timed_out')),
    constraint run_waits_ended_has_outcome check ((ended_at is null) = (outcome is null)),
    constraint run_waits_resumed_by_signal check ((outcome is not distinct from 'resumed') = (signal_id is not null)),
    constraint run_waits_timed_out_had_time check (outcome is distinct from 'timed_out' or wake_at is not null)
);

create unique index run_waits_one_per_signal_idx on counterfoil.run_waits (org_id, run_id, signal_id)
where signal_id is not null;

comment on table counterfoil.run_waits is
'Public waits of a run and how each ended. A later attempt that comes to the same wait gets the same answer.';
comment on column counterfoil.run_waits.org_id is 'Tenant.';
comment on column counterfoil.run_waits.run_id is 'Run that waits or waited.';
comment on column counterfoil.run_waits.wait_id is 'Identity of the wait within the play, given by the worker, or random.';
comment on column counterfoil.run_waits.event_name is 'Event that ends the wait; empty for an unnamed resume.';
comment on column counterfoil.run_waits.reason is 'Reason given with the wait.';
comment on column counterfoil.run_waits.began_at is 'Database time at which the wait began.';
comment on column counterfoil.run_waits.wake_at is 'Time at which the wait ends by itself; null for never.';
comment on column counterfoil.run_waits.ended_at is 'Database time at which its end was decided; null while it lasts.';
comment on column counterfoil.run_waits.outcome is 'resumed (by a signal) or timed_out.';
comment on column counterfoil.run_waits.signal_id is 'Signal that ended the wait.';
