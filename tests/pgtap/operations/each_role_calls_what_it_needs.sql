-- Who may call the functions of ledger, receipts and operations, said here once more by hand: the matrix decides, this says what it
-- should have decided.
begin;
select plan(10);

create function pg_temp.callers(p_name text) returns text [] language sql stable parallel safe as $function$
  select array_agg(distinct r.rolname::text order by r.rolname::text)
  from pg_catalog.pg_proc as p
  cross join pg_catalog.pg_roles as r
  where p.pronamespace = 'counterfoil'::regnamespace and p.proname = p_name
    and r.rolname in ('counterfoil_worker', 'counterfoil_dispatcher', 'counterfoil_gateway', 'counterfoil_operator', 'counterfoil_reader')
    and has_function_privilege(r.oid, p.oid, 'execute')
$function$;
create function pg_temp.names(p_roles text) returns text [] language sql stable parallel safe as $function$
  select array_agg(f.name order by f.name)
  from (values
    ('append_run_created'), ('append_run_started'), ('append_run_events'), ('dispatch_ledger_action'), ('dispatch_receipt_action'),
    ('claim_receipts'), ('complete_receipts'), ('fail_receipts'), ('skip_receipts'), ('release_receipts'), ('mark_receipts_running'),
    ('mark_receipts_queued'), ('heartbeat_receipts'), ('observe_docflow_node'), ('get_receipts'), ('set_setting'), ('set_admission_limits'),
    ('list_audit'), ('maintain'), ('purge_receipts'), ('take_receipts'), ('settle_receipts'), ('append_ledger_piece'), ('schema_version')
  ) as f (name)
  where coalesce(array_to_string(pg_temp.callers(f.name), ' '), '') = p_roles
$function$;

select is(pg_temp.names('counterfoil_gateway'),
  array['append_run_created', 'append_run_events', 'append_run_started', 'dispatch_ledger_action', 'dispatch_receipt_action'],
  'only the gateway appends and dispatches');
select is(pg_temp.names('counterfoil_gateway counterfoil_worker'),
  array['claim_receipts', 'complete_receipts', 'fail_receipts', 'heartbeat_receipts', 'mark_receipts_queued', 'mark_receipts_running',
    'observe_docflow_node', 'release_receipts', 'skip_receipts'],
  'workers and the gateway write receipts');
select is(pg_temp.names('counterfoil_operator'), array['list_audit', 'maintain', 'purge_receipts', 'set_admission_limits', 'set_setting'],
  'only operators change how it works');
select is(pg_temp.names(''), array['append_ledger_piece', 'settle_receipts', 'take_receipts'], 'nobody calls what the functions share');
select is(array_length(pg_temp.callers('schema_version'), 1), 5, 'everybody may ask for the version');

-- A role without any right on a table gets through a function what it may not touch itself.
set local role counterfoil_worker;
select is((select c.claimed from counterfoil.claim_receipts('acme', 'elsewhere', 1, array['k']) as c), true, 'a worker claims');
select throws_ok('select count(*) from counterfoil.step_receipts', '42501', null, 'but reads no table');
select throws_ok($$ select counterfoil.set_setting('prefix_max_facts', '1') $$, '42501', null, 'and changes no setting');
select throws_ok($$ select counterfoil.take_receipts('acme', 'elsewhere', 1, array['k'], null, null) $$, '42501', null, 'nor passes a function by');
reset role;
set local role counterfoil_reader;
select throws_ok($$ select counterfoil.claim_receipts('acme', 'elsewhere', 1, array['k']) $$, '42501', null, 'a reader claims nothing');
reset role;

select * from finish();
rollback;
