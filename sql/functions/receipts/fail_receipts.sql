-- fail_receipts: keeps the failures of steps.
--
-- Promises: p_receipts is [{key, leaseId, runAttempt, error, errorPayload, failureKind}, …]; one answer each, in that order.
--           repairable failures are claimed again by the next who asks, terminal ones (the default) are remembered. All
--           are written or none; a repeat answers the same. Messages and payloads are redacted and bounded.
-- Locks:    the receipts' rows, in the order of their keys.
-- Raises:   RL001 malformed items; RL002 receipt_not_found; RL003 receipt_settled_otherwise; RL004 attempt_lease_not_current
--           or receipt_lease_not_current; RL008 too many items.
-- Since:    1

create or replace function counterfoil.fail_receipts(p_org_id text, p_run_id text, p_receipts jsonb)
returns table (ordinal integer, key text, receipt jsonb)
language plpgsql
volatile
parallel unsafe
called on null input
security definer
set search_path = pg_catalog, pg_temp
as $function$
begin
    -- PL/pgSQL keeps the plan; an SQL function would be planned anew in every call.
    return query
    select t.ordinal, t.key, t.receipt
    from counterfoil.settle_receipts(p_org_id, p_run_id, p_receipts, 'failed', false) as t;
end
$function$;

comment on function counterfoil.fail_receipts(text, text, jsonb) is
'Fails step receipts under their leases: [{key, leaseId, runAttempt, error, errorPayload, failureKind}, …]. Answers (ordinal, key, receipt) in that order.';

revoke all on function counterfoil.fail_receipts(text, text, jsonb) from public;
