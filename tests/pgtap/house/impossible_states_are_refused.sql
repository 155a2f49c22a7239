-- What cannot be cannot be written, whoever writes it. One sample for each check and each
-- unique index of the tables that hold a run's state; the catalog says whether one is missing.
begin;
select plan(2);

-- The constraint that a statement breaks, by name.
create function pg_temp.broken(p_sql text, out name text)
language plpgsql volatile parallel unsafe as $function$
begin
  execute p_sql;
  name := 'nothing';
exception
  when check_violation or unique_violation then
    get stacked diagnostics name = constraint_name;
end
$function$;

-- r is running, q is queued, w waits for an event, d is done.
insert into counterfoil.runs (
    org_id, run_id, status, play_id, play_name, release_lane, priority, root_run_id, launch_digest, created_at,
    available_at, max_attempts, attempt, started_at, ended_at, terminal_event_id, wait_kind, wait_id, waiting_since
)
select
    'acme', s.run_id, s.status, 'p', 'p', 'default', 5, s.run_id, sha256('x'), now(),
    now(), 3, s.attempt, case when s.attempt > 0 then now() end, case when s.status = 'completed' then now() end,
    case when s.status = 'completed' then 'end' end, s.wait_kind, case when s.wait_kind = 'public' then 'w1' end,
    case when s.wait_kind is not null then now() end
from (
    values ('r', 'running', 1, null), ('q', 'queued', 0, null), ('w', 'waiting', 1, 'public'), ('d', 'completed', 1, null)
) as s (run_id, status, attempt, wait_kind);
insert into counterfoil.run_queue (
    org_id, run_id, state, slotless, play_name, release_lane, priority, ready_at, queued_at
)
values ('acme', 'q', 'ready', false, 'p', 'default', 5, now(), now());
insert into counterfoil.attempts (
    org_id, run_id, attempt, status, worker, release_lane, lease_id, lease_expires_at, claimed_at, heartbeat_at, ended_at
)
values
('acme', 'r', 1, 'running', 'w', 'default', 'l', now(), now(), now(), null),
('acme', 'd', 1, 'completed', 'w', 'default', 'l', null, now(), now(), now());
insert into counterfoil.run_signals (org_id, run_id, signal_id, event_name, received_at)
values ('acme', 'w', 's', 'go', now());
insert into counterfoil.run_waits (org_id, run_id, wait_id, event_name, began_at, signal_id, ended_at, outcome)
values ('acme', 'w', 'w1', 'go', now(), null, null, null), ('acme', 'w', 'w0', 'go', now(), 's', now(), 'resumed');
insert into counterfoil.purged_facts (org_id, run_id, through_seq) values ('acme', 'd', 4);
insert into counterfoil.outbox (org_id, run_id, seq, event_id, event_type, lane, deferred, payload, delivery_key, created_at)
values
('acme', 'd', 1, 'd1', 'run.created', 'lifecycle', false, '{}', gen_random_uuid(), now()),
('acme', 'd', 2, 'd2', 'run.started', 'lifecycle', false, '{}', gen_random_uuid(), now()),
('acme', 'd', 3, 'd3', 'run.progress', 'lifecycle', false, '{}', gen_random_uuid(), now()),
('acme', 'd', 4, 'd4', 'run.completed', 'lifecycle', false, '{}', gen_random_uuid(), now());
insert into counterfoil.lanes (
    org_id, run_id, lane, priority, due_at, head_seq, tail_seq, lease_owner, lease_expires_at, lease_through_seq
)
values ('acme', 'd', 'lifecycle', 1, now(), 3, 4, 'd1', now(), 4);
insert into counterfoil.fact_failures (
    org_id, run_id, seq, lane, event_id, state, attempts, next_attempt_at, last_error, first_failed_at, last_failed_at
)
values ('acme', 'd', 3, 'lifecycle', 'd3', 'retrying', 1, now(), '{}', now(), now());
insert into counterfoil.deliveries (org_id, run_id, lane, first_seq, last_seq, outcome, lease_owner, delivered_at)
values ('acme', 'd', 'lifecycle', 1, 1, 'delivered', 'd1', now());
insert into counterfoil.ledgers (org_id, run_id, status, created_at, updated_at)
values ('acme', 'd', 'running', now(), now());
insert into counterfoil.ledger_appends (
    org_id, run_id, idempotency_key, chunk, chunk_count, events_digest, events, first_position, last_position,
    lease_owner, appended_at
)
values ('acme', 'd', 'k', 1, 2, sha256('x'), 2, 1, 2, 'd1', now());
insert into counterfoil.ledger_events (org_id, run_id, position, event_type, event_id, item, occurred_at, event, appended_at)
values
('acme', 'd', 3, 'run.progress', 'd3', 0, now(), '{}', now()),
('acme', 'd', 4, 'run.completed', 'd4', 0, now(), '{}', now());
insert into counterfoil.step_receipts (
    org_id, key, status, run_id, lease_id, lease_expires_at, created_at, claimed_at, updated_at, settled_at, error,
    failure_kind
)
values
('acme', 'running', 'running', 'r', 'l', now(), now(), now(), now(), null, null, null),
('acme', 'done', 'completed', 'r', 'l', null, now(), now(), now(), now(), null, null),
('acme', 'failed', 'failed', 'r', 'l', null, now(), now(), now(), now(), 'e', 'terminal');

create temporary table samples (name text not null, statement text not null) on commit drop;
insert into samples (name, statement)
select s.name, format('update counterfoil.%I set %s', s.relation, s.change)
from (
    values
    ('runs', 'runs_is_possible', $$run_id = '' where run_id = 'q'$$),
    ('runs', 'runs_is_possible', $$status = 'lost' where run_id = 'r'$$),
    ('runs', 'runs_is_possible', $$priority = 10 where run_id = 'r'$$),
    ('runs', 'runs_is_possible', $$launch_digest = 'x' where run_id = 'r'$$),
    ('runs', 'runs_is_possible', $$attempt = 4 where run_id = 'r'$$),
    ('runs', 'runs_is_possible', $$started_at = null where run_id = 'r'$$),
    ('runs', 'runs_is_possible', $$status = 'queued' where run_id = 'r'$$),
    ('runs', 'runs_is_possible', $$status = 'running' where run_id = 'q'$$),
    ('runs', 'runs_is_possible', $$status = 'failed' where run_id = 'r'$$),
    ('runs', 'runs_is_possible', $$terminal_event_id = null where run_id = 'd'$$),
    ('runs', 'runs_is_possible', $$status = 'waiting' where run_id = 'r'$$),
    ('runs', 'runs_is_possible', $$wait_kind = 'rain', wait_id = null where run_id = 'w'$$),
    ('runs', 'runs_is_possible', $$waiting_since = null where run_id = 'w'$$),
    ('runs', 'runs_is_possible', $$wake_at = now() where run_id = 'r'$$),
    ('runs', 'runs_is_possible', $$wait_id = null where run_id = 'w'$$),
    ('runs', 'runs_is_possible', $$cancel_reason = 'x' where run_id = 'r'$$),
    ('runs', 'runs_is_possible', $$org_id = repeat('x', 201), parent_run_id = null where run_id = 'q'$$),
    ('runs', 'runs_is_possible', $$run_id = repeat('x', 201) where run_id = 'q'$$),
    ('runs', 'runs_is_possible', $$priority = -1 where run_id = 'q'$$),
    ('runs', 'runs_is_possible', $$max_attempts = 0 where run_id = 'q'$$),
    ('runs', 'runs_is_possible', $$attempt = -1 where run_id = 'r'$$),
    ('runs', 'runs_is_possible', $$ended_at = now(), terminal_event_id = 'x' where run_id = 'q'$$),
    ('runs', 'runs_is_possible', $$ended_at = now(), terminal_event_id = 'x' where run_id = 'r'$$),
    ('runs', 'runs_is_possible', $$ended_at = now(), terminal_event_id = 'x' where run_id = 'w'$$),
    ('runs', 'runs_is_possible', $$status = 'completed', ended_at = now(), terminal_event_id = 'x' where run_id = 'q'$$),
    ('runs', 'runs_is_possible', $$status = 'running' where run_id = 'd'$$),
    ('runs', 'runs_is_possible', $$status = 'completed' where run_id = 'r'$$),
    ('runs', 'runs_is_possible', $$status = 'running' where run_id = 'w'$$),
    ('runs', 'runs_is_possible', $$attempt = 0, started_at = null where run_id = 'w'$$),
    ('runs', 'runs_is_possible', $$wait_kind = 'retry' where run_id = 'w'$$),
    ('runs', 'runs_is_possible', $$waiting_since = now() where run_id = 'r'$$),
    ('runs', 'runs_is_possible', $$wait_id = 'x' where run_id = 'r'$$),
    ('runs', 'runs_is_possible', $$wait_reason = 'x' where run_id = 'r'$$),
    ('runs', 'runs_is_possible', $$wait_event = 'x' where run_id = 'r'$$),
    ('runs', 'runs_is_possible', $$cancel_deadline_at = now() where run_id = 'r'$$),
    ('run_queue', 'run_queue_is_possible', $$state = 'sleeping', slotless = true$$),
    ('run_queue', 'run_queue_is_possible', $$state = 'held', concurrency_key = 'k'$$),
    ('run_queue', 'run_queue_is_possible', $$state = 'gone'$$),
    ('run_queue', 'run_queue_is_possible', $$state = 'held', slotless = true$$),
    ('run_queue', 'run_queue_is_possible', $$slotless = true, concurrency_key = 'k'$$),
    ('run_queue', 'run_queue_is_possible', $$state = 'held'$$),
    ('attempts', 'attempts_number_is_positive', $$attempt = 0 where run_id = 'r'$$),
    ('attempts', 'attempts_status_is_known', $$status = 'odd', lease_expires_at = null where run_id = 'r'$$),
    ('attempts', 'attempts_lease_has_owner', $$worker = '' where run_id = 'r'$$),
    ('attempts', 'attempts_running_means_leased', $$lease_expires_at = null where run_id = 'r'$$),
    ('attempts', 'attempts_ended_has_time', $$ended_at = null where run_id = 'd'$$),
    ('attempts', 'attempts_answer_has_digest', $$answer = '{}' where run_id = 'd'$$),
    ('attempts', 'attempts_answer_needs_end', $$answer = '{}', answer_digest = 'x' where run_id = 'r'$$),
    ('attempts', 'attempts_runner_terminal_is_whole', $$runner_terminal = '{}' where run_id = 'r'$$),
    (
        'attempts', 'attempts_runner_terminal_is_known',
        $$runner_terminal = '{}', runner_terminal_status = 'odd', runner_terminal_at = now() where run_id = 'r'$$
    ),
    ('run_waits', 'run_waits_outcome_is_known', $$outcome = 'odd', signal_id = null where wait_id = 'w0'$$),
    ('run_waits', 'run_waits_ended_has_outcome', $$ended_at = now() where wait_id = 'w1'$$),
    ('run_waits', 'run_waits_resumed_by_signal', $$signal_id = null where wait_id = 'w0'$$),
    ('run_waits', 'run_waits_timed_out_had_time', $$outcome = 'timed_out', signal_id = null where wait_id = 'w0'$$),
    ('run_waits', 'run_waits_one_per_signal_idx', $$signal_id = 's', ended_at = now(), outcome = 'resumed'$$),
    ('purged_facts', 'purged_facts_through_positive', $$through_seq = 0$$),
    ('outbox', 'outbox_pkey', $$seq = 4 where seq = 3$$),
    ('outbox', 'outbox_event_id_key', $$event_id = 'd4' where seq = 3$$),
    ('outbox', 'outbox_is_possible', $$seq = 0 where seq = 3$$),
    ('outbox', 'outbox_is_possible', $$event_id = '' where seq = 3$$),
    ('outbox', 'outbox_is_possible', $$event_type = 'run.odd' where seq = 3$$),
    ('outbox', 'outbox_is_possible', $$event_type = 'run.created' where seq = 3$$),
    ('outbox', 'outbox_is_possible', $$event_type = 'run.progress' where seq = 1$$),
    ('outbox', 'outbox_is_possible', $$event_id = repeat('x', 201) where seq = 3$$),
    ('outbox', 'outbox_is_possible', $$lane = 'search' where seq = 1$$),
    ('outbox', 'outbox_is_possible', $$lane = 'search' where seq = 2$$),
    ('outbox', 'outbox_is_possible', $$event_type = 'run.started' where seq = 3$$),
    ('outbox', 'outbox_is_possible', $$lane = 'fast' where seq = 3$$),
    ('outbox', 'outbox_is_possible', $$lane = 'search' where seq = 4$$),
    ('outbox', 'outbox_is_possible', $$payload = '[]' where seq = 3$$),
    ('outbox', 'outbox_one_terminal_idx', $$event_type = 'run.failed' where seq = 3$$),
    ('lanes', 'lanes_is_possible', $$lane = 'fast'$$),
    ('lanes', 'lanes_is_possible', $$priority = 4$$),
    ('lanes', 'lanes_is_possible', $$head_seq = 5, lease_through_seq = 5$$),
    ('lanes', 'lanes_is_possible', $$terminal_seq = 2$$),
    ('lanes', 'lanes_is_possible', $$terminal_seq = 5$$),
    ('lanes', 'lanes_is_possible', $$wait_seq = 2$$),
    ('lanes', 'lanes_is_possible', $$wait_seq = 5$$),
    ('lanes', 'lanes_is_possible', $$lease_through_seq = 2$$),
    ('lanes', 'lanes_is_possible', $$head_seq = 0$$),
    ('lanes', 'lanes_is_possible', $$priority = -1$$),
    ('lanes', 'lanes_is_possible', $$failures = -1$$),
    ('lanes', 'lanes_is_possible', $$lease_owner = null$$),
    ('lanes', 'lanes_is_possible', $$lease_expires_at = null$$),
    ('lanes', 'lanes_is_possible', $$lease_through_seq = 5$$),
    ('lanes', 'lanes_is_possible', $$receipt_key = 'k'$$),
    (
        'lanes', 'lanes_is_possible',
        $$receipt_key = 'k', receipt_through_seq = 5, receipt_frozen_at = now(), receipt_piece_max_events = 1,
        receipt_piece_max_bytes = 1$$
    ),
    ('lanes', 'lanes_is_possible', $$blocked_at = now()$$),
    ('fact_failures', 'fact_failures_lane_is_known', $$lane = 'fast'$$),
    ('fact_failures', 'fact_failures_state_is_known', $$state = 'delivered', next_attempt_at = null$$),
    ('fact_failures', 'fact_failures_attempts_not_negative', $$attempts = -1$$),
    ('fact_failures', 'fact_failures_retrying_has_time', $$next_attempt_at = null$$),
    ('fact_failures', 'fact_failures_blocked_has_time', $$state = 'blocked', next_attempt_at = null$$),
    ('fact_failures', 'fact_failures_skipped_has_time', $$skipped_at = now(), skipped_by = 'me'$$),
    ('fact_failures', 'fact_failures_skip_is_signed', $$state = 'skipped', skipped_at = now(), next_attempt_at = null$$),
    ('deliveries', 'deliveries_lane_is_known', $$lane = 'fast'$$),
    ('deliveries', 'deliveries_outcome_is_known', $$outcome = 'failed'$$),
    ('deliveries', 'deliveries_first_before_last', $$last_seq = 0$$),
    ('deliveries', 'deliveries_frozen_has_key', $$frozen_at = now()$$),
    ('ledgers', 'ledgers_status_is_known', $$status = 'odd'$$),
    ('ledgers', 'ledgers_positions_have_no_gap', $$last_position = 5, event_count = 4$$),
    ('ledgers', 'ledgers_ended_has_time', $$status = 'completed'$$),
    ('ledger_appends', 'ledger_appends_chunk_in_range', $$chunk = 3$$),
    ('ledger_appends', 'ledger_appends_positions_in_order', $$last_position = -1$$),
    ('ledger_appends', 'ledger_appends_events_not_negative', $$events = 1$$),
    ('ledger_events', 'ledger_events_pkey', $$position = 4 where position = 3$$),
    ('ledger_events', 'ledger_events_source_key', $$event_id = 'd4' where position = 3$$),
    ('ledger_events', 'ledger_events_position_is_positive', $$position = 0 where position = 3$$),
    ('ledger_events', 'ledger_events_item_not_negative', $$item = -1 where position = 3$$),
    ('ledger_events', 'ledger_events_created_is_first', $$event_type = 'run.created' where position = 3$$),
    ('ledger_events', 'ledger_events_started_is_second', $$event_type = 'run.started' where position = 3$$),
    ('ledger_events', 'ledger_events_event_is_object', $$event = '[]' where position = 3$$),
    ('ledger_events', 'ledger_events_one_terminal_idx', $$event_type = 'run.failed' where position = 3$$),
    ('step_receipts', 'step_receipts_is_possible', $$key = '' where key = 'done'$$),
    ('step_receipts', 'step_receipts_is_possible', $$key = repeat('x', 1001) where key = 'done'$$),
    ('step_receipts', 'step_receipts_is_possible', $$status = 'odd', lease_expires_at = null where key = 'running'$$),
    ('step_receipts', 'step_receipts_is_possible', $$status = 'odd' where key = 'done'$$),
    ('step_receipts', 'step_receipts_is_possible', $$lease_id = null where key = 'running'$$),
    ('step_receipts', 'step_receipts_is_possible', $$lease_expires_at = null where key = 'running'$$),
    ('step_receipts', 'step_receipts_is_possible', $$lease_expires_at = now() where key = 'done'$$),
    ('step_receipts', 'step_receipts_is_possible', $$settled_at = null where key = 'done'$$),
    ('step_receipts', 'step_receipts_is_possible', $$settled_at = null where key = 'failed'$$),
    ('step_receipts', 'step_receipts_is_possible', $$settled_at = now() where key = 'running'$$),
    ('step_receipts', 'step_receipts_is_possible', $$failure_kind = null where key = 'failed'$$),
    ('step_receipts', 'step_receipts_is_possible', $$failure_kind = 'odd' where key = 'failed'$$),
    ('step_receipts', 'step_receipts_is_possible', $$failure_kind = 'terminal' where key = 'done'$$),
    ('step_receipts', 'step_receipts_is_possible', $$error = null where key = 'failed'$$),
    ('step_receipts', 'step_receipts_is_possible', $$error = 'e' where key = 'done'$$),
    ('step_receipts', 'step_receipts_is_possible', $$error_payload = '{}' where key = 'done'$$),
    ('step_receipts', 'step_receipts_is_possible', $$output = '{}' where key = 'failed'$$),
    ('step_receipts', 'step_receipts_is_possible', $$output = '{}' where key = 'running'$$)
) as s (relation, name, change);
-- Two attempts of one run that are both open.
insert into samples (name, statement)
values ('attempts_one_open_idx', $$
    insert into counterfoil.attempts (
        org_id, run_id, attempt, status, worker, release_lane, lease_id, lease_expires_at, claimed_at, heartbeat_at
    ) values ('acme', 'r', 2, 'running', 'w2', 'default', 'l2', now(), now(), now()) $$);

select is_empty(
    $$
    select s.name, b.name
    from samples as s
    cross join lateral pg_temp.broken(s.statement) as b
    where b.name is distinct from s.name
    $$,
    'every impossible state is refused by the rule that names it'
);

select results_eq(
    $$ select distinct s.name collate "C" from samples as s where s.name not like '%\_pkey' order by 1 $$,
    $$
    select r.name collate "C"
    from (
        select k.conname::text as name, k.conrelid as relation
        from pg_catalog.pg_constraint as k
        where k.contype in ('c', 'u')
        union
        select c.relname::text, i.indrelid
        from pg_catalog.pg_index as i
        inner join pg_catalog.pg_class as c on c.oid = i.indexrelid
        where i.indisunique and not i.indisprimary
    ) as r
    where r.relation in (
        'counterfoil.runs'::regclass, 'counterfoil.run_queue'::regclass, 'counterfoil.attempts'::regclass,
        'counterfoil.run_waits'::regclass, 'counterfoil.purged_facts'::regclass, 'counterfoil.outbox'::regclass, 'counterfoil.lanes'::regclass,
        'counterfoil.fact_failures'::regclass, 'counterfoil.deliveries'::regclass, 'counterfoil.ledgers'::regclass,
        'counterfoil.ledger_appends'::regclass, 'counterfoil.ledger_events'::regclass,
        'counterfoil.step_receipts'::regclass
    )
    order by 1
    $$,
    'no rule of these tables is without a sample'
);

select * from finish();
rollback;
