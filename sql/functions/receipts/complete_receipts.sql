-- complete_receipts: keeps the results of steps.
--
-- Promises: p_receipts is [{key, leaseId, runAttempt, output, ttlSeconds}, …]; one answer each, in that order, with the output
--           as it was kept where p_return_output. All are written or none. A repeat answers the same and writes nothing,
--           also when it comes after the attempt has ended. With ttlSeconds the result counts as absent after that time.
--           Outputs are sanitised: secrets become [redacted], depths below receipt_json_max_depth [truncated].
-- Locks:    the receipts' rows, in the order of their keys.
-- Raises:   RL001 malformed items; RL002 receipt_not_found; RL003 receipt_settled_otherwise; RL004 attempt_lease_not_current
--           or receipt_lease_not_current; RL008 an output over receipt_output_max_bytes, or too many items.
-- Since:    1

create or replace function counterfoil.complete_receipts(
    p_org_id text,
    p_run_id text,
    p_receipts jsonb,
    p_return_output boolean default false
)
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
    from counterfoil.settle_receipts(p_org_id, p_run_id, p_receipts, 'completed', coalesce(p_return_output, false)) as t;
end
$function$;

comment on function counterfoil.complete_receipts(text, text, jsonb, boolean) is
'Completes step receipts under their leases: [{key, leaseId, runAttempt, output, ttlSeconds}, …]. Answers (ordinal, key, receipt) in that order.';

revoke all on function counterfoil.complete_receipts(text, text, jsonb, boolean) from public;
