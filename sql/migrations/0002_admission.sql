-- Admission: who may launch how much, the runs, the queue of runs that can be claimed, and schedules.

create table counterfoil.admission_limits (
    org_id text collate "C" not null,
    scope text collate "C" not null,
    max_queued bigint,
    max_active bigint,
    launches_per_minute bigint,
    max_per_concurrency_key bigint,
    changed_at timestamptz not null,
    constraint admission_limits_pkey primary key (org_id, scope),
    constraint admission_limits_scope_is_known check (scope in ('org', 'default', 'installation')),
    constraint admission_limits_scope_names_org check ((scope = 'org') = (org_id <> '')),
    constraint admission_limits_are_not_negative check (
        coalesce(max_queued, 0) >= 0 and coalesce(max_active, 0) >= 0
        and coalesce(launches_per_minute, 0) >= 0 and coalesce(max_per_concurrency_key, 1) >= 1
    ),
    constraint admission_limits_keys_belong_to_orgs check (
        scope <> 'installation' or max_per_concurrency_key is null
    )
);

comment on table counterfoil.admission_limits is
'Limits on launches and on runs at once. An org''s own row wins over the default row, field by field; the installation''s row bounds all orgs together. Null means no limit.';
comment on column counterfoil.admission_limits.org_id is 'Tenant; empty in the default and the installation row.';
comment on column counterfoil.admission_limits.scope is 'org, default (orgs without a value of their own) or installation (all orgs together).';
comment on column counterfoil.admission_limits.max_queued is 'Most runs in status queued.';
comment on column counterfoil.admission_limits.max_active is 'Most runs in status running.';
comment on column counterfoil.admission_limits.launches_per_minute is 'Most admissions in one clock minute of the database.';
comment on column counterfoil.admission_limits.max_per_concurrency_key is 'Runs of one concurrency key that may execute at once; 1 where neither row says.';
comment on column counterfoil.admission_limits.changed_at is 'Database time of the last change.';

-- One row. Limits that an old snapshot does not see yet have no row that it could lock: it locks this one.
create table counterfoil.limits_version (
    version bigint not null,
    constraint limits_version_pkey primary key (version)
);

comment on table counterfoil.limits_version is
'One row, which every change of limits writes, so that a transaction whose snapshot is older than a change fails instead of going by limits that no longer hold.';
comment on column counterfoil.limits_version.version is 'Number of changes so far.';

insert into counterfoil.limits_version (version) values (0);

create table counterfoil.admission_counters (
    org_id text collate "C" not null,
    shard smallint not null,
    queued bigint not null default 0,
    active bigint not null default 0,
    window_start timestamptz not null default '-infinity',
    window_launches bigint not null default 0,
    counted_since timestamptz not null default now(),
    freed_at timestamptz not null default now(),
    freed_lately double precision not null default 0,
    constraint admission_counters_pkey primary key (org_id, shard),
    constraint admission_counters_shard_in_range check (shard between 0 and 15)
) with (fillfactor = 20, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

comment on table counterfoil.admission_counters is
'How many runs an org has queued and active, spread over sixteen rows so that its admissions do not wait for each other. Kept only while limits apply to the org: who is not limited pays nothing. The sum over the rows is exact; a single row may be negative.';
comment on column counterfoil.admission_counters.org_id is 'Tenant; empty for the installation as a whole, kept only while it has limits.';
comment on column counterfoil.admission_counters.shard is 'Which of the sixteen rows, 0 to 15.';
comment on column counterfoil.admission_counters.queued is 'This row''s part of the number of runs in status queued.';
comment on column counterfoil.admission_counters.active is 'This row''s part of the number of runs in status running.';
comment on column counterfoil.admission_counters.window_start is 'Start of the clock minute that window_launches counts.';
comment on column counterfoil.admission_counters.window_launches is 'This row''s part of the admissions in that minute.';
comment on column counterfoil.admission_counters.counted_since is 'Since when the row is there.';
comment on column counterfoil.admission_counters.freed_at is 'When a run last left the queue through this row, or since when the row is there.';
comment on column counterfoil.admission_counters.freed_lately is
'Runs that left the queue through this row, as of freed_at; each counts less as it grows older, by a factor of e a minute. Says how fast places come free.';

create table counterfoil.concurrency_keys (
    org_id text collate "C" not null,
    concurrency_key text collate "C" not null,
    in_use bigint not null,
    unended bigint not null,
    constraint concurrency_keys_pkey primary key (org_id, concurrency_key),
    constraint concurrency_keys_in_use_in_range check (in_use between 0 and unended)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

comment on table counterfoil.concurrency_keys is
'Slots taken per concurrency key, one row while unended runs have the key. Its row lock decides who gets the next slot; it is taken before any run''s.';
comment on column counterfoil.concurrency_keys.org_id is 'Tenant.';
comment on column counterfoil.concurrency_keys.concurrency_key is 'Key that launches share when they must not execute together.';
comment on column counterfoil.concurrency_keys.in_use is 'Runs that hold a slot: let into the queue, executing or waiting. A run keeps its slot until it ends.';
comment on column counterfoil.concurrency_keys.unended is 'Runs of the key that have not ended, with a slot or without.';

create table counterfoil.runs (
    org_id text collate "C" not null,
    run_id text collate "C" not null,
    status text collate "C" not null,
    play_id text collate "C" not null,
    play_name text collate "C" not null,
    release_lane text collate "C" not null,
    priority smallint not null,
    concurrency_key text collate "C",
    root_run_id text collate "C" not null,
    parent_run_id text collate "C",
    launch_digest bytea not null,
    created_at timestamptz not null,
    available_at timestamptz not null,
    deadline_at timestamptz,
    attempt_timeout_seconds integer,
    max_attempts integer not null,
    attempt integer not null default 0,
    started_at timestamptz,
    ended_at timestamptz,
    terminal_event_id text collate "C",
    wait_kind text collate "C",
    wait_id text collate "C",
    wait_reason text,
    wait_event text collate "C",
    waiting_since timestamptz,
    wake_at timestamptz,
    cancel_requested_at timestamptz,
    cancel_reason text,
    cancel_deadline_at timestamptz,
    result jsonb,
    result_summary jsonb,
    error jsonb,
    constraint runs_pkey primary key (org_id, run_id),
    constraint runs_parent_fkey foreign key (org_id, parent_run_id)
    references counterfoil.runs (org_id, run_id) on delete set null (parent_run_id)
) with (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000);

-- What runs may hold, in one function, for the reason given beside those of outbox and lanes (0004): a table's checks are
-- parsed again in every statement that writes to it. The commonest rows come first: those that are queued or running.
create function counterfoil.is_possible_run(p_row counterfoil.runs)
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
        length(p_row.org_id) not between 1 and 200
        or length(p_row.run_id) not between 1 and 200
        or p_row.priority not between 0 and 9
        or octet_length(p_row.launch_digest) <> 32
        or p_row.max_attempts < 1
        or p_row.attempt not between 0 and p_row.max_attempts
        or (p_row.attempt = 0) <> (p_row.started_at is null)
        or (p_row.ended_at is null) <> (p_row.terminal_event_id is null)
        or (p_row.cancel_requested_at is null and num_nonnulls(p_row.cancel_reason, p_row.cancel_deadline_at) > 0)
    then
        return false;
    end if;
    if p_row.wait_kind is null then
        return
            num_nonnulls(p_row.waiting_since, p_row.wait_id, p_row.wait_reason, p_row.wait_event, p_row.wake_at) = 0
            and case p_row.status
                when 'queued' then p_row.attempt = 0 and p_row.ended_at is null
                when 'running' then p_row.attempt > 0 and p_row.ended_at is null
                when 'completed' then p_row.attempt > 0 and p_row.ended_at is not null
                else p_row.status in ('failed', 'cancelled') and p_row.ended_at is not null
            end;
    end if;
    return
        p_row.status = 'waiting'
        and p_row.attempt > 0
        and p_row.ended_at is null
        and p_row.waiting_since is not null
        and p_row.wait_kind in ('public', 'retry', 'detached_runner')
        and (p_row.wait_kind = 'public') = (p_row.wait_id is not null);
end
$function$;

comment on function counterfoil.is_possible_run(counterfoil.runs) is
'Whether a row of runs can be: ids with length, a known status and what belongs to it (attempts and start, end and terminal fact, what it waits for), numbers in range. Private.';

revoke all on function counterfoil.is_possible_run(counterfoil.runs) from public;

alter table counterfoil.runs add constraint runs_is_possible check (counterfoil.is_possible_run(runs));

create index runs_by_parent_idx on counterfoil.runs (org_id, parent_run_id) where parent_run_id is not null;
-- Partial, so that a plan made while the table is small cannot take it for a look-up by key: on few rows it looks
-- cheaper than the primary key and then reads the whole org. Lists say created_at > '-infinity'.
create index runs_recent_idx on counterfoil.runs (org_id, created_at desc, run_id desc)
where created_at > '-infinity';
-- Runs that failed, for the list that operators ask for most. It names error and not status, since an index that
-- names status would make every change of a run's status an update of all its indexes.
create index runs_with_error_idx on counterfoil.runs (org_id, created_at desc, run_id desc) where error is not null;
-- Retention, org by org, the first to end first.
create index runs_ended_idx on counterfoil.runs (org_id, ended_at) where ended_at is not null;
create index runs_unended_deadline_idx on counterfoil.runs (release_lane, deadline_at)
where ended_at is null and deadline_at is not null;
-- The same org by org, for whoever counts an org's runs: some of these stand in no queue. Said by the terminal fact, so that
-- a plan made while the table is small cannot take the index above, which has the runs of all orgs.
create index runs_unended_with_deadline_idx on counterfoil.runs (org_id, run_id)
where terminal_event_id is null and deadline_at is not null;
create index runs_cancelling_idx on counterfoil.runs (release_lane, cancel_deadline_at)
where ended_at is null and cancel_deadline_at is not null;

comment on table counterfoil.runs is
'One execution of a play for an org. Its row lock orders everything that happens to the run. Kept narrow: the launch lies beside it.';
comment on column counterfoil.runs.org_id is 'Tenant.';
comment on column counterfoil.runs.run_id is 'Id of the run, chosen by the launcher; 1 to 200 characters.';
comment on column counterfoil.runs.status is 'queued, running, waiting, completed, failed or cancelled.';
comment on column counterfoil.runs.play_id is 'Id of the play, from the launch.';
comment on column counterfoil.runs.play_name is 'Name under which workers know the play.';
comment on column counterfoil.runs.release_lane is 'Release whose workers may claim the run.';
comment on column counterfoil.runs.priority is '0 (first) to 9 (last) within its org.';
comment on column counterfoil.runs.concurrency_key is 'Runs that share it execute at most N at once; null means no bound.';
comment on column counterfoil.runs.root_run_id is 'Topmost run of the tree this one belongs to; itself where it has no parent.';
comment on column counterfoil.runs.parent_run_id is 'Run that launched this one, in the same org; null for none.';
comment on column counterfoil.runs.launch_digest is 'sha256 of the canonical launch without its volatile fields: the identity of the launch.';
comment on column counterfoil.runs.created_at is 'Database time of the admission.';
comment on column counterfoil.runs.available_at is 'Earliest time of the first claim.';
comment on column counterfoil.runs.deadline_at is 'Time at which the run fails if it has not ended; null for none.';
comment on column counterfoil.runs.attempt_timeout_seconds is 'Longest one attempt may take, in seconds; null for no bound.';
comment on column counterfoil.runs.max_attempts is 'How many attempts the run may use up.';
comment on column counterfoil.runs.attempt is 'Number of the latest attempt; 0 before the first claim.';
comment on column counterfoil.runs.started_at is 'Database time of the first claim.';
comment on column counterfoil.runs.ended_at is 'Database time of the terminal fact.';
comment on column counterfoil.runs.terminal_event_id is 'Event id of the terminal fact; null while the run has not ended.';
comment on column counterfoil.runs.wait_kind is 'Why a waiting run waits: public (a wait the play asked for), retry (between attempts) or detached_runner.';
comment on column counterfoil.runs.wait_id is 'Which of run_waits the run is in; null when it is in no public wait.';
comment on column counterfoil.runs.wait_reason is 'Reason given with the wait.';
comment on column counterfoil.runs.wait_event is 'Name of the event that ends the wait; null where only time does.';
comment on column counterfoil.runs.waiting_since is 'Database time at which the wait began.';
comment on column counterfoil.runs.wake_at is 'Time at which the run becomes claimable by itself; null for never.';
comment on column counterfoil.runs.cancel_requested_at is 'Database time of the first cancellation request.';
comment on column counterfoil.runs.cancel_reason is 'Reason given with the cancellation.';
comment on column counterfoil.runs.cancel_deadline_at is 'Time at which the run is cancelled without its holder.';
comment on column counterfoil.runs.result is 'What the play returned, or the result that came with a failure.';
comment on column counterfoil.runs.result_summary is 'Bounded summary of the result, for lists.';
comment on column counterfoil.runs.error is 'Error of a failed run, or of the latest failed attempt: message, type, code.';

create table counterfoil.launches (
    org_id text collate "C" not null,
    run_id text collate "C" not null,
    launch jsonb not null,
    dispatch_authority jsonb not null,
    constraint launches_pkey primary key (org_id, run_id),
    constraint launches_run_fkey foreign key (org_id, run_id)
    references counterfoil.runs (org_id, run_id) on delete cascade,
    constraint launches_launch_is_object check (jsonb_typeof(launch) = 'object'),
    constraint launches_authority_is_object check (jsonb_typeof(dispatch_authority) = 'object')
);

comment on table counterfoil.launches is
'The launch document of each run, whole, and the narrow part of it that a delivery needs. Never updated.';
comment on column counterfoil.launches.org_id is 'Tenant.';
comment on column counterfoil.launches.run_id is 'Run the launch belongs to.';
comment on column counterfoil.launches.launch is 'Launch document as given, unknown fields included.';
comment on column counterfoil.launches.dispatch_authority is 'The ten routing and authority fields of the launch; never the input or anything large.';

create table counterfoil.run_queue (
    org_id text collate "C" not null,
    run_id text collate "C" not null,
    state text collate "C" not null,
    slotless boolean not null,
    release_lane text collate "C" not null,
    play_name text collate "C" not null,
    priority smallint not null,
    ready_at timestamptz not null,
    queued_at timestamptz not null,
    concurrency_key text collate "C",
    constraint run_queue_pkey primary key (org_id, run_id),
    constraint run_queue_run_fkey foreign key (org_id, run_id)
    references counterfoil.runs (org_id, run_id) on delete cascade,
    -- A ready run has its slot, where there is a key; a held one waits for it.
    constraint run_queue_is_possible check (
        case state
            when 'ready' then not slotless
            when 'held' then slotless and concurrency_key is not null
            else state = 'sleeping' and (not slotless or concurrency_key is not null)
        end
    )
) with (
    fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
    autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off
);

-- No fourth id: a row of an index holds some 2,700 bytes, and an id may have 800.
create index run_queue_ready_idx on counterfoil.run_queue (
    release_lane, play_name, org_id, priority, queued_at
) where state = 'ready';
create index run_queue_sleeping_idx on counterfoil.run_queue (release_lane, play_name, ready_at)
where state = 'sleeping';
create index run_queue_held_idx on counterfoil.run_queue (org_id, concurrency_key, priority, queued_at, run_id)
where state = 'held';

comment on table counterfoil.run_queue is
'Runs that wait for a worker: one row each, none while a run executes or has ended. Each state has its own index, so that a claim reads only what it can take.';
comment on column counterfoil.run_queue.org_id is 'Tenant.';
comment on column counterfoil.run_queue.run_id is 'Run that waits for a worker.';
comment on column counterfoil.run_queue.state is
'ready (can be claimed), sleeping (until ready_at) or held (until a slot of its concurrency key is free).';
comment on column counterfoil.run_queue.slotless is
'Whether the run has yet to get a slot of its concurrency key; false where it has no key.';
comment on column counterfoil.run_queue.release_lane is 'Copy of the run''s release lane.';
comment on column counterfoil.run_queue.play_name is 'Copy of the run''s play name.';
comment on column counterfoil.run_queue.priority is 'Copy of the run''s priority.';
comment on column counterfoil.run_queue.ready_at is
'Since when or from when the run can be claimed: availability, end of a backoff, or wake time.';
comment on column counterfoil.run_queue.queued_at is 'Since when the run could be claimed for the first time: its age among equals, those that wait for a slot too.';
comment on column counterfoil.run_queue.concurrency_key is 'Copy of the run''s concurrency key.';

create table counterfoil.schedules (
    org_id text collate "C" not null,
    name text collate "C" not null,
    schedule_id uuid not null,
    cron text not null,
    minutes smallint[] not null,
    hours smallint[] not null,
    days smallint[] not null,
    last_day boolean not null,
    last_working_day boolean not null,
    months smallint[] not null,
    weekdays smallint[] not null,
    nth_weekdays smallint[] not null,
    day_and_weekday boolean not null,
    every_real_hour boolean not null,
    time_zone text not null,
    launch jsonb not null,
    overlap text collate "C" not null,
    catch_up text collate "C" not null,
    catch_up_seconds integer,
    created_at timestamptz not null,
    paused_at timestamptz,
    next_fire_at timestamptz,
    look_at timestamptz,
    buffered_at timestamptz,
    last_fire_at timestamptz,
    last_run_id text collate "C",
    last_outcome text collate "C",
    last_error text,
    constraint schedules_pkey primary key (org_id, name),
    constraint schedules_ids_have_length check (length(org_id) between 1 and 200 and length(name) between 1 and 100),
    constraint schedules_launch_is_object check (jsonb_typeof(launch) = 'object'),
    constraint schedules_overlap_is_known check (overlap in ('allow', 'skip', 'buffer')),
    constraint schedules_catch_up_is_known check (catch_up in ('none', 'one', 'all')),
    constraint schedules_catch_up_is_bounded check (catch_up_seconds > 0 or (catch_up_seconds is null and catch_up = 'one')),
    constraint schedules_paused_looks_at_nothing check (paused_at is null or look_at is null),
    constraint schedules_only_buffers_hold_back check (buffered_at is null or overlap = 'buffer'),
    constraint schedules_outcome_is_known check (
        last_outcome in ('admitted', 'skipped', 'buffered', 'missed', 'refused')
    )
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);

create index schedules_look_idx on counterfoil.schedules (look_at) where look_at is not null;
-- What health() counts.
create index schedules_refused_idx on counterfoil.schedules (org_id, name) where last_outcome = 'refused';

comment on table counterfoil.schedules is
'Launches that recur by cron. Its row lock decides who fires; the cron expression was parsed when the schedule was created, and these columns say what fires when.';
comment on column counterfoil.schedules.org_id is 'Tenant.';
comment on column counterfoil.schedules.name is 'Name of the schedule within the org; part of the run ids it launches.';
comment on column counterfoil.schedules.schedule_id is 'Random identity, so that a schedule made anew under an old name is told from it.';
comment on column counterfoil.schedules.cron is 'Cron expression as it was given, for people.';
comment on column counterfoil.schedules.minutes is 'Minutes of the hour at which it fires, 0 to 59.';
comment on column counterfoil.schedules.hours is 'Hours of the day at which it fires, 0 to 23.';
comment on column counterfoil.schedules.days is 'Days of the month on which it fires, 1 to 31.';
comment on column counterfoil.schedules.last_day is 'Whether it fires on the last day of the month.';
comment on column counterfoil.schedules.last_working_day is 'Whether it fires on the last day of the month that is none of Saturday and Sunday.';
comment on column counterfoil.schedules.months is 'Months in which it fires, 1 to 12.';
comment on column counterfoil.schedules.weekdays is 'Weekdays on which it fires, 0 (Sunday) to 6.';
comment on column counterfoil.schedules.nth_weekdays is
'Weekdays of the month on which it fires: ten times the weekday plus 1 to 5 for the first to fifth of the month, 9 for the last.';
comment on column counterfoil.schedules.day_and_weekday is
'Whether a day must fit both days and weekdays; else one is enough. As in cron, both where one of the two begins with a star.';
comment on column counterfoil.schedules.every_real_hour is
'Whether minutes or hours begin with a star: then it fires whenever the clock shows a fitting time, else once for each fitting time of the calendar. They differ where the clock is changed.';
comment on column counterfoil.schedules.time_zone is 'Time zone in which the fields are meant, such as Europe/Berlin.';
comment on column counterfoil.schedules.launch is 'Template of the launches: a launch document without orgId and runId.';
comment on column counterfoil.schedules.overlap is 'What happens while the run before has not ended: allow, skip, or buffer (one firing waits for the end).';
comment on column counterfoil.schedules.catch_up is 'What happens to firings that nobody was there for: none, one (the latest) or all.';
comment on column counterfoil.schedules.catch_up_seconds is 'How late a firing may be; one that is later is left out. Null means however late.';
comment on column counterfoil.schedules.created_at is 'Database time of the creation.';
comment on column counterfoil.schedules.paused_at is 'Database time since when it does not fire; null while it does.';
comment on column counterfoil.schedules.next_fire_at is 'Time of the next firing; null when there is none.';
comment on column counterfoil.schedules.look_at is
'When a worker has to look at it: the next firing, the end of a limit''s retry-after, or soon while a firing is held back. Null for never.';
comment on column counterfoil.schedules.buffered_at is 'Time of the one firing that waits for the end of the run before.';
comment on column counterfoil.schedules.last_fire_at is 'Time of the latest firing that launched a run.';
comment on column counterfoil.schedules.last_run_id is 'Run that it launched.';
comment on column counterfoil.schedules.last_outcome is
'What became of the latest firing: admitted, skipped or buffered (overlap), missed (catch-up) or refused (see last_error).';
comment on column counterfoil.schedules.last_error is 'Why the latest firing was refused.';
