begin;
\ir ../setup.psql
select plan(41);

create function pg_temp.failure(p_sqlstate text, p_detail text default null, p_message text default 'Why.')
returns jsonb language sql stable parallel safe as $function$
  select jsonb_build_array(f.status, f.body -> 'code', f.body -> 'retryable', f.body -> 'retry_after_ms', f.headers -> 'retry-after')
  from counterfoil.receipt_failure_response(p_sqlstate, p_message, p_detail) as f
$function$;

select is(pg_temp.failure('RL001', 'p_key'), '[400, "invalid_argument", false, null, null]');
select is(pg_temp.failure('RL002'), '[404, "not_found", false, null, null]');
select is(pg_temp.failure('RL003'), '[409, "identity_conflict", false, null, null]');
select is(pg_temp.failure('RL004'), '[409, "lease_lost", true, null, null]');
select is(pg_temp.failure('RL005'), '[409, "invalid_state", false, null, null]');
select is(pg_temp.failure('RL006', '{"limit": "maxQueued", "retryAfterMs": 2500}'), '[503, "scheduler_capacity", true, 2500, "3"]');
select is(pg_temp.failure('RL006'), '[503, "scheduler_capacity", true, 1000, "1"]', 'a wait even where none was given');
select is(pg_temp.failure('RL006', '{"limit": "x", "retryAfterMs": 1}'), '[503, "scheduler_capacity", true, 1, "1"]', 'retry-after is a second at least');
select is(pg_temp.failure('RL007', '{"limit": "launchesPerMinute", "retryAfterMs": 60000}'), '[429, "quota_exceeded", true, 60000, "60"]');
select is(pg_temp.failure('RL008'), '[413, "payload_too_large", false, null, null]');
select is(pg_temp.failure('RL009'), '[503, "schema_version", false, null, null]');
select is(pg_temp.failure('P0001'), '[422, "invalid_projection", false, null, null]');
select is(pg_temp.failure('53300'), '[503, "runtime_postgres_admission_backpressure", true, 1000, "1"]', 'no connection is free');
select is(pg_temp.failure('08006'), '[503, "upstream_service_unavailable", true, 1000, "1"]', 'the connection broke');
select is(pg_temp.failure('57P01'), '[503, "upstream_service_unavailable", true, 1000, "1"]', 'the server shuts down');
select is(pg_temp.failure('40P01'), '[503, "upstream_service_unavailable", true, 1000, "1"]', 'a deadlock');
select is(pg_temp.failure('57014'), '[503, "upstream_service_unavailable", true, 1000, "1"]', 'a timeout');
select is(pg_temp.failure('22P05'), '[400, "invalid_argument", false, null, null]', 'a character that cannot be stored');
select is(pg_temp.failure('22003'), '[400, "invalid_argument", false, null, null]', 'a number that cannot be stored');
select is(pg_temp.failure('54000'), '[400, "invalid_argument", false, null, null]', 'a value over a limit of the server');
select is(pg_temp.failure('XX000'), '[500, "work_receipt_persistence_failed", false, null, null]', 'what nobody expected');
select is(pg_temp.failure('23514'), '[500, "work_receipt_persistence_failed", false, null, null]');
select is(pg_temp.failure(null, null, null), '[500, "work_receipt_persistence_failed", false, null, null]', 'even without a reason');
select is((select f.body ->> 'detail' from counterfoil.receipt_failure_response('XX000', '') as f), 'No reason is known.');

select is((select f.body -> 'code' from counterfoil.receipt_failure_response('XX000', 'x', p_operation => o.operation) as f), to_jsonb(o.code), o.operation)
from (values ('ledger', 'run_ledger_append_failed'), ('runtime_sheet', 'runtime_sheet_persistence_failed'), ('runtime_durability', 'runtime_durability_internal'), ('read', 'runtime_durability_internal')) as o (operation, code);

select is(
  (select f.body from counterfoil.receipt_failure_response('RL004', 'The lease is lost.', 'receipt_lease_not_current', 'complete_runtime_step_receipt') as f),
  '{"error": "The lease is lost.", "code": "lease_lost", "retryable": true, "hint": "Stop working under this lease, and claim again.", "detail": "receipt_lease_not_current", "action": "complete_runtime_step_receipt"}',
  'message, reason and action are told');
select is(
  (select array[f.headers ->> 'x-counterfoil-error-code', f.headers ->> 'x-counterfoil-error-detail', f.body ->> 'detail']
   from counterfoil.receipt_failure_response('XX000', e'first\r\nsecond pässword=hunter22 password=hunter22') as f),
  array['work_receipt_persistence_failed', 'first second p?ssword=hunter22 password=[redacted]', e'first\r\nsecond pässword=hunter22 password=[redacted]'],
  'an unexpected reason is one ASCII line in the header, and redacted everywhere');
select is((select f.body ->> 'detail' from counterfoil.receipt_failure_response('RL001', 'x', 'p_x: password=hunter22') as f), 'p_x: password=[redacted]', 'a known one''s detail too');
select is((select length(f.headers ->> 'x-counterfoil-error-detail') from counterfoil.receipt_failure_response('XX000', repeat('x', 600)) as f), 500, 'of 500 characters');
select is(
  (select count(*) from counterfoil.failure_classes() as c
   where (c.status, c.code, c.retryable, c.hint) is distinct from (
     select (f.status, f.body ->> 'code', (f.body ->> 'retryable')::boolean, f.body ->> 'hint')
     from counterfoil.receipt_failure_response(rpad(c.sqlstate_prefix, 5, '0'), 'x') as f)),
  0::bigint, 'the table that a gateway knows by heart says the same');
select ok((select count(*) > 15 from counterfoil.failure_classes()), 'and is not empty');


create function pg_temp.hint(p_sqlstate text, p_hint text default null)
returns text language sql stable parallel safe as $function$
  select f.body ->> 'hint' from counterfoil.receipt_failure_response(p_sqlstate, 'Why.', p_hint => p_hint) as f
$function$;
select is((select count(*) from counterfoil.failure_classes() as c where c.hint = '' or c.hint is null), 0::bigint, 'every class says what to do');
select is(pg_temp.hint('RL001', 'Give a key.'), 'Give a key.', 'a failure that says it itself knows better');
select is(pg_temp.hint('RL001', ''), 'Correct what detail names, then send the request again.', 'one that does not is told of its kind');
select isnt(pg_temp.hint('XX000'), null, 'and so is what nobody expected');
select is(pg_temp.hint('RL003', 'Send password=hunter22 once.'), 'Send password=[redacted] once.', 'a hint is redacted');
select is(pg_temp.hint('XX000', 'x'), 'x', 'whatever its class');
select is(
  (select array[length(f.body ->> 'detail'), length(f.body ->> 'hint')]
   from counterfoil.receipt_failure_response('XX000', repeat('x', 5000), p_hint => repeat('y', 5000)) as f),
  array[2000, 2000], 'no text is endless');

select * from finish();
rollback;
