-- Injected faults of the receipt gateway, for tests. Nothing of this is in the shipped SQL, so an installed schema has no switch to
-- turn on: the suite puts its own function in the place of a private one, in a database of its own, and verify would name it.
--
-- A row in receipt_faults makes the run's next completion fail on its first receipt (receipt_complete_write_fail).

create table counterfoil.receipt_faults (
  org_id text not null,
  run_id text not null,
  primary key (org_id, run_id)
);

alter function counterfoil.answer_completion(text, text, jsonb, integer) rename to answer_completion_without_faults;

create function counterfoil.answer_completion(p_org_id text, p_run_id text, p_receipts jsonb, p_wire_format integer)
returns table (status integer, headers jsonb, body jsonb)
language plpgsql volatile parallel unsafe set search_path = pg_catalog, pg_temp
as $function$
declare
  v_chosen record;
begin
  delete from counterfoil.receipt_faults as f where f.org_id = p_org_id and f.run_id = p_run_id;
  if not found then
    return query
    select a.status, a.headers, a.body
    from counterfoil.answer_completion_without_faults(p_org_id, p_run_id, p_receipts, p_wire_format) as a;
    return;
  end if;

  perform counterfoil.settle_receipts(p_org_id, p_run_id, p_receipts - 0, 'completed', false);

  select r.key, r.lease_id, r.run_attempt into v_chosen
  from counterfoil.step_receipts as r
  where r.org_id = p_org_id and r.key = p_receipts -> 0 ->> 'key' and r.status = 'running' and r.run_id = p_run_id;
  if not found then
    raise exception 'a completion fault needs a running receipt of the run';
  end if;
  perform counterfoil.settle_receipts(p_org_id, p_run_id, jsonb_build_array(jsonb_build_object(
    'key', v_chosen.key, 'leaseId', v_chosen.lease_id, 'runAttempt', v_chosen.run_attempt,
    'error', 'Injected fault: receipt_complete_write_fail.', 'failureKind', 'repairable'
  )), 'failed', false);

  return query select r.status, r.headers, r.body from counterfoil.http_refusal(
    409, 'runtime_test_fault', 'Injected fault: receipt_complete_write_fail.', 'Complete the other receipts; claim the chosen one again.'
  ) as r;
end
$function$;
