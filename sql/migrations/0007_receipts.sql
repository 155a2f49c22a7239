-- Receipts: memoised, leased results of steps, and observations of nodes.

-- What step_receipts may hold. A session keeps the plan of a function, where PostgreSQL parses and plans checks that are
-- written out again in every statement: half of what the insert of a receipt cost.
create function counterfoil.is_possible_receipt(
    p_key text, p_status text, p_lease_id text, p_lease_expires_at timestamptz, p_settled_at timestamptz,
    p_output jsonb, p_error text, p_error_payload jsonb, p_failure_kind text
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
    return
        length(p_key) between 1 and 1000
        and (p_lease_expires_at is null or p_lease_id is not null)
        and (p_status = 'running') = (p_lease_expires_at is not null)
        and case p_status
            when 'failed' then
                p_settled_at is not null and p_error is not null and p_output is null
                and coalesce(p_failure_kind in ('repairable', 'terminal'), false)
            else
                num_nulls(p_error, p_error_payload, p_failure_kind) = 3
                and case
                    when p_status in ('completed', 'skipped') then p_settled_at is not null
                    else p_status in ('queued', 'running') and p_settled_at is null and p_output is null
                end
        end;
end
$function$;

comment on function counterfoil.is_possible_receipt(
    text, text, text, timestamptz, timestamptz, jsonb, text, jsonb, text
) is
'Whether a row of step_receipts can be: a key with length, a known status, a lease exactly while it runs, and what its status settles, no more. Private.';

revoke all on function counterfoil.is_possible_receipt(
    text, text, text, timestamptz, timestamptz, jsonb, text, jsonb, text
) from public;

create table counterfoil.step_receipts (
    org_id text collate "C" not null,
    key text collate "C" not null,
    status text collate "C" not null,
    run_id text collate "C" not null,
    run_attempt integer,
    lease_id text collate "C",
    lease_aware boolean not null default false,
    lease_expires_at timestamptz,
    claims integer not null default 1,
    output jsonb,
    error text,
    error_payload jsonb,
    failure_kind text collate "C",
    settled_lease_id text collate "C",
    created_at timestamptz not null,
    claimed_at timestamptz not null,
    updated_at timestamptz not null,
    settled_at timestamptz,
    expires_at timestamptz,
    constraint step_receipts_pkey primary key (org_id, key),
    constraint step_receipts_is_possible check (
        counterfoil.is_possible_receipt(
            key, status, lease_id, lease_expires_at, settled_at, output, error, error_payload, failure_kind
        )
    )
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000);

create index step_receipts_retention_idx on counterfoil.step_receipts (org_id, settled_at)
where settled_at is not null;

comment on table counterfoil.step_receipts is
'Result of one step, remembered per org and key. Whoever holds the lease computes it; everybody else gets what was computed.';
comment on column counterfoil.step_receipts.org_id is 'Tenant.';
comment on column counterfoil.step_receipts.key is 'Key of the step; 1 to 1000 characters, 1800 bytes at most. The same key is the same work.';
comment on column counterfoil.step_receipts.status is 'queued, running, completed, failed or skipped.';
comment on column counterfoil.step_receipts.run_id is 'Run that holds or last held the receipt.';
comment on column counterfoil.step_receipts.run_attempt is 'Attempt of that run; null where the caller did not say.';
comment on column counterfoil.step_receipts.lease_id is 'Fencing token of the present or last claim; null once it was released.';
comment on column counterfoil.step_receipts.lease_aware is 'Whether the claimer chose the lease id. Then every write must name it; else run and attempt suffice.';
comment on column counterfoil.step_receipts.lease_expires_at is 'Time at which the lease lapses; set exactly while the receipt runs.';
comment on column counterfoil.step_receipts.claims is 'How often the receipt was claimed for computing.';
comment on column counterfoil.step_receipts.output is 'What the step returned, sanitised. SQL null and JSON null both read as null.';
comment on column counterfoil.step_receipts.error is 'Message of the failure, redacted.';
comment on column counterfoil.step_receipts.error_payload is 'Structured failure, sanitised.';
comment on column counterfoil.step_receipts.failure_kind is 'repairable (may be claimed again) or terminal (is remembered).';
comment on column counterfoil.step_receipts.settled_lease_id is 'Lease under which the receipt was settled or released, to know a repeat.';
comment on column counterfoil.step_receipts.created_at is 'Database time of the first claim.';
comment on column counterfoil.step_receipts.claimed_at is 'Database time of the latest claim.';
comment on column counterfoil.step_receipts.updated_at is 'Database time of the latest change.';
comment on column counterfoil.step_receipts.settled_at is 'Database time at which it completed, failed or was skipped.';
comment on column counterfoil.step_receipts.expires_at is 'Time after which a completed receipt counts as absent; null for never.';

create table counterfoil.observations (
    org_id text collate "C" not null,
    run_id text collate "C" not null,
    attempt integer not null,
    node_id text collate "C" not null,
    invocation_seq integer not null,
    invocation_id text collate "C",
    status text collate "C" not null,
    inputs jsonb,
    outputs jsonb,
    inputs_truncated boolean not null,
    outputs_truncated boolean not null,
    error text,
    observed_at timestamptz not null,
    updated_at timestamptz not null,
    constraint observations_pkey primary key (org_id, run_id, attempt, node_id, invocation_seq),
    constraint observations_attempt_not_negative check (attempt >= 0 and invocation_seq >= 0),
    constraint observations_status_is_known check (status in ('started', 'completed', 'failed'))
) with (fillfactor = 80);

create index observations_retention_idx on counterfoil.observations (org_id, updated_at)
where updated_at > '-infinity';

comment on table counterfoil.observations is
'What the nodes of a play''s graph did, best effort, one row an invocation. A status never goes back.';
comment on column counterfoil.observations.org_id is 'Tenant.';
comment on column counterfoil.observations.run_id is 'Run the node ran in.';
comment on column counterfoil.observations.attempt is 'Attempt of the run; 0 where unknown.';
comment on column counterfoil.observations.node_id is 'Node of the play''s graph.';
comment on column counterfoil.observations.invocation_seq is 'Which invocation of the node, from 0.';
comment on column counterfoil.observations.invocation_id is 'Id of the invocation; null where unknown.';
comment on column counterfoil.observations.status is 'started, completed or failed.';
comment on column counterfoil.observations.inputs is 'Bounded preview of the inputs.';
comment on column counterfoil.observations.outputs is 'Bounded preview of the outputs.';
comment on column counterfoil.observations.inputs_truncated is 'Whether the inputs were longer than the preview.';
comment on column counterfoil.observations.outputs_truncated is 'Whether the outputs were longer than the preview.';
comment on column counterfoil.observations.error is 'Message of the failure, redacted and bounded.';
comment on column counterfoil.observations.observed_at is 'When it happened, as the observer says.';
comment on column counterfoil.observations.updated_at is 'Database time of the latest change.';

create table counterfoil.receipt_counters (
    org_id text collate "C" not null,
    shard smallint not null,
    reads bigint not null default 0,
    read_hits bigint not null default 0,
    claims bigint not null default 0,
    claims_granted bigint not null default 0,
    claims_memoised bigint not null default 0,
    claims_forced bigint not null default 0,
    constraint receipt_counters_pkey primary key (org_id, shard),
    constraint receipt_counters_shard_in_range check (shard between 0 and 15),
    constraint receipt_counters_not_negative check (
        least(reads, read_hits, claims, claims_granted, claims_memoised, claims_forced) >= 0
    )
) with (fillfactor = 20, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

comment on table counterfoil.receipt_counters is
'What the receipt gateway was asked for, counted per org over sixteen rows so that requests do not wait for each other. Only sums mean anything.';
comment on column counterfoil.receipt_counters.org_id is 'Tenant.';
comment on column counterfoil.receipt_counters.shard is 'Which of the sixteen rows, 0 to 15.';
comment on column counterfoil.receipt_counters.reads is 'Receipts asked for by a get action.';
comment on column counterfoil.receipt_counters.read_hits is 'Those among them that existed.';
comment on column counterfoil.receipt_counters.claims is 'Receipts asked for by a claim action.';
comment on column counterfoil.receipt_counters.claims_granted is 'Those among them that the caller then computed.';
comment on column counterfoil.receipt_counters.claims_memoised is 'Those among them that were answered with a settled result.';
comment on column counterfoil.receipt_counters.claims_forced is 'Those among them that were claimed with forceRefresh.';
