-- Operations: settings, the audit trail, and who is at work.
-- Reference tables without org_id are small and belong to the installation as a whole.

-- Searches fold and split text of any script, which no other encoding can hold.
do $block$
begin
    if getdatabaseencoding() <> 'UTF8' then
        raise exception using
            errcode = 'feature_not_supported',
            message = format('Counterfoil needs a database in UTF8; this one is in %s.', getdatabaseencoding()),
            hint = 'Create one with: create database NAME encoding ''UTF8'' template template0';
    end if;
end
$block$;

create table counterfoil.settings (
    name text collate "C" not null,
    value jsonb,
    default_value jsonb not null,
    kind text collate "C" not null,
    minimum numeric,
    maximum numeric,
    unit text not null,
    meaning text not null,
    changed_at timestamptz,
    changed_by text,
    constraint settings_pkey primary key (name),
    constraint settings_kind_is_known check (kind in ('integer', 'boolean', 'text')),
    constraint settings_default_fits_kind check (
        case kind
            when 'integer' then jsonb_typeof(default_value) = 'number'
            when 'boolean' then jsonb_typeof(default_value) = 'boolean'
            else jsonb_typeof(default_value) = 'string'
        end
    ),
    constraint settings_value_fits_kind check (
        value is null or jsonb_typeof(value) = jsonb_typeof(default_value)
    ),
    constraint settings_change_is_signed check ((changed_at is null) = (changed_by is null))
);

comment on table counterfoil.settings is
'Every tunable of the installation with its default. Changed only by set_setting(), which validates. Small reference table.';
comment on column counterfoil.settings.name is 'Name of the setting, lower case with underscores.';
comment on column counterfoil.settings.value is 'Value chosen by the operator, as JSON of the kind; null means the default applies.';
comment on column counterfoil.settings.default_value is 'Value that applies while no other was chosen.';
comment on column counterfoil.settings.kind is 'What the value is: integer, boolean or text.';
comment on column counterfoil.settings.minimum is 'Smallest integer allowed, inclusive; null means none.';
comment on column counterfoil.settings.maximum is 'Largest integer allowed, inclusive; null means none.';
comment on column counterfoil.settings.unit is 'Unit of the value, such as seconds, bytes or facts.';
comment on column counterfoil.settings.meaning is 'What the setting does, for the person who changes it.';
comment on column counterfoil.settings.changed_at is 'When the value was last changed; null while it never was.';
comment on column counterfoil.settings.changed_by is 'Database role that last changed the value.';

create table counterfoil.org_retention (
    org_id text collate "C" not null,
    name text collate "C" not null,
    seconds bigint not null,
    changed_at timestamptz not null,
    changed_by text not null,
    constraint org_retention_pkey primary key (org_id, name),
    constraint org_retention_name_is_known check (
        name in ('log_retention', 'outbox_retention', 'journal_retention', 'ledger_retention', 'receipt_retention')
    ),
    constraint org_retention_seconds_in_range check (seconds between 3600 and 3155760000)
);

comment on table counterfoil.org_retention is
'Retention of orgs that have their own; the settings of the same names apply to all others. Changed only by set_org_retention().';
comment on column counterfoil.org_retention.org_id is 'Tenant.';
comment on column counterfoil.org_retention.name is 'Name of the setting that the value stands in for.';
comment on column counterfoil.org_retention.seconds is 'How long the org keeps what the setting is about.';
comment on column counterfoil.org_retention.changed_at is 'When the value was last changed.';
comment on column counterfoil.org_retention.changed_by is 'Database role that last changed it.';

create table counterfoil.retention_turns (
    kind text collate "C" not null,
    after_org_id text collate "C" not null default '',
    unfinished boolean not null default false,
    constraint retention_turns_pkey primary key (kind)
) with (fillfactor = 50);

comment on table counterfoil.retention_turns is
'Where retention goes on: it looks at so many orgs a call, one after the other. A hint: losing it costs nothing but a turn. Small reference table.';
comment on column counterfoil.retention_turns.kind is 'What is taken out: logs, facts, journal, ledgers, runs, receipts or observations.';
comment on column counterfoil.retention_turns.after_org_id is 'Org after which the next call begins; empty for the first.';
comment on column counterfoil.retention_turns.unfinished is 'Whether an org of this round had more than its share of a batch.';

create table counterfoil.operator_audit (
    org_id text collate "C" not null,
    audit_id uuid not null,
    recorded_at timestamptz not null,
    actor text not null,
    action text collate "C" not null,
    target jsonb not null,
    reason text,
    details jsonb not null default '{}'::jsonb,
    constraint operator_audit_pkey primary key (org_id, audit_id),
    constraint operator_audit_target_is_object check (jsonb_typeof(target) = 'object')
);

create index operator_audit_recent_idx on counterfoil.operator_audit (org_id, recorded_at desc, audit_id desc);

comment on table counterfoil.operator_audit is
'What operators did by hand, such as a skipped or replayed fact or a changed limit. Rows are only ever added.';
comment on column counterfoil.operator_audit.org_id is 'Tenant the action touched; empty for the installation as a whole.';
comment on column counterfoil.operator_audit.audit_id is 'Random identity of the entry.';
comment on column counterfoil.operator_audit.recorded_at is 'Database time of the action.';
comment on column counterfoil.operator_audit.actor is 'Database role that acted (session_user).';
comment on column counterfoil.operator_audit.action is 'Function that was called, such as skip_blocked.';
comment on column counterfoil.operator_audit.target is 'What was acted on, as a JSON object of ids.';
comment on column counterfoil.operator_audit.reason is 'Why, in the operator''s words; null where the action asks for none.';
comment on column counterfoil.operator_audit.details is 'What changed, such as the value before and after. Never a payload or a secret.';

create table counterfoil.workers (
    worker text collate "C" not null,
    release_lane text collate "C" not null,
    plays text[] not null,
    claim_cursor text collate "C",
    first_seen_at timestamptz not null,
    last_seen_at timestamptz not null,
    constraint workers_pkey primary key (worker)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

comment on table counterfoil.workers is
'Workers that have claimed lately: what they can execute and where in the ring of orgs their next claim starts. A hint: losing it costs nothing but one turn.';
comment on column counterfoil.workers.worker is 'Name the worker claims under.';
comment on column counterfoil.workers.release_lane is 'Release lane the worker serves.';
comment on column counterfoil.workers.plays is 'Names of the plays the worker can execute; empty means any.';
comment on column counterfoil.workers.claim_cursor is 'Org served last; the next claim starts with the org after it, so that orgs take turns.';
comment on column counterfoil.workers.first_seen_at is 'Database time of the worker''s first claim.';
comment on column counterfoil.workers.last_seen_at is 'Database time of the worker''s latest recorded claim; refreshed at most every 30 seconds while idle.';

create table counterfoil.listeners (
    listener text collate "C" not null,
    queue text collate "C" not null,
    asleep_until timestamptz not null,
    constraint listeners_pkey primary key (listener, queue),
    constraint listeners_queue_is_known check (queue in ('attempts', 'lifecycle', 'search'))
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

comment on table counterfoil.listeners is
'Processes that sleep until woken by NOTIFY. Writers notify only while one is registered, since a NOTIFY on every append would halve throughput.';
comment on column counterfoil.listeners.listener is 'Name of the sleeping process.';
comment on column counterfoil.listeners.queue is 'Queue it waits for: attempts, lifecycle or search.';
comment on column counterfoil.listeners.asleep_until is 'Database time at which the process polls anyway; past it the row means nothing.';

insert into counterfoil.settings (name, default_value, kind, minimum, maximum, unit, meaning) values
('log_tail_limit', '200', 'integer', 1, 10000, 'lines', 'How many of a terminal''s last log lines are kept.'),
('prefix_max_facts', '64', 'integer', 1, 1000, 'facts', 'Most facts that one delivery may hold.'),
('prefix_max_bytes', '1048576', 'integer', 1024, 67108864, 'bytes', 'Size at which a delivery takes no further fact; one fact larger than that goes alone.'),
('delivery_max_attempts', '12', 'integer', 1, 1000, 'attempts', 'Failed deliveries of a fact before it is blocked.'),
('delivery_backoff_base_ms', '1000', 'integer', 1, 3600000, 'milliseconds', 'Wait before the first retry of a delivery; doubles with each further one.'),
('delivery_backoff_max_ms', '300000', 'integer', 1, 86400000, 'milliseconds', 'Longest wait between two tries of a delivery.'),
('delivery_piece_max_events', '200', 'integer', 1, 10000, 'events', 'Most ledger events that one HTTP piece of a delivery may hold.'),
('delivery_piece_max_bytes', '262144', 'integer', 1024, 16777216, 'bytes', 'Size at which a delivery is cut into another HTTP piece; one event larger than that travels alone.'),
('attempt_backoff_base_ms', '1000', 'integer', 1, 3600000, 'milliseconds', 'Wait before the first retry of a run; doubles with each further one.'),
('attempt_backoff_max_ms', '300000', 'integer', 1, 86400000, 'milliseconds', 'Longest wait between two attempts of a run.'),
('default_max_attempts', '3', 'integer', 1, 1000, 'attempts', 'Attempts that a launch gets when it does not say maxAttempts.'),
('cancel_grace_seconds', '30', 'integer', 0, 86400, 'seconds', 'How long the holder of a cancelled run may take to end it before it is ended without the holder.'),
('launch_max_bytes', '1048576', 'integer', 1024, 67108864, 'bytes', 'Largest launch document.'),
('fact_max_bytes', '1048576', 'integer', 1024, 67108864, 'bytes', 'Largest payload of one fact.'),
('fact_batch_max', '1000', 'integer', 1, 100000, 'facts', 'Most facts that one append_facts call may hold.'),
('launch_batch_max', '10000', 'integer', 1, 100000, 'launches', 'Most launches that one admit_launches call may hold.'),
('claim_batch_max', '1000', 'integer', 1, 10000, 'rows', 'Most attempts or deliveries that one claim may take.'),
('result_max_bytes', '1048576', 'integer', 1024, 67108864, 'bytes', 'Largest result of a run.'),
('receipt_output_max_bytes', '1048576', 'integer', 1024, 67108864, 'bytes', 'Largest output of one step.'),
('receipt_batch_max', '1000', 'integer', 1, 10000, 'receipts', 'Most receipts that one call may touch.'),
('receipt_lease_seconds', '60', 'integer', 5, 300, 'seconds', 'Lease of a running step receipt when the claim does not say.'),
('receipt_json_max_depth', '32', 'integer', 1, 200, 'levels', 'Depth below which a step''s output is cut and marked.'),
('preview_max_bytes', '4096', 'integer', 64, 1048576, 'bytes', 'Largest preview of a node''s inputs or outputs.'),
('log_retention', '604800', 'integer', 3600, 3155760000, 'seconds', 'How long a delivered fact keeps its log text.'),
('outbox_retention', '2592000', 'integer', 3600, 3155760000, 'seconds', 'How long a delivered fact is kept.'),
('ledger_retention', '31557600', 'integer', 3600, 3155760000, 'seconds', 'How long an ended run keeps its ledger and its row.'),
('journal_retention', '7776000', 'integer', 3600, 3155760000, 'seconds', 'How long a journal entry is kept.'),
('receipt_retention', '7776000', 'integer', 3600, 3155760000, 'seconds', 'How long a settled step receipt is kept.'),
('dispatch_token_seconds', '300', 'integer', 10, 3600, 'seconds', 'Lifetime of a dispatch token that the gateway issues.');

insert into counterfoil.retention_turns (kind) values
('logs'), ('facts'), ('journal'), ('ledgers'), ('runs'), ('receipts'), ('observations');
