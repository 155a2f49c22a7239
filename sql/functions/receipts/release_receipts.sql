-- release_receipts: gives claimed receipts up, so that the next who asks computes them.
--
-- Promises: p_receipts is [{key, leaseId, runAttempt}, …]; one answer each, in that order. The receipts become queued and the
--           leases are over. All are written or none; a repeat answers the same until somebody else claims.
-- Locks:    the receipts' rows, in the order of their keys.
-- Raises:   RL001 malformed items; RL002 receipt_not_found; RL004 attempt_lease_not_current or receipt_lease_not_current;
--           RL008 too many items.
-- Since:    1

create or replace function counterfoil.release_receipts(p_org_id text, p_run_id text, p_receipts jsonb)
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
    from counterfoil.park_receipts(p_org_id, p_run_id, p_receipts, false) as t;
end
$function$;

comment on function counterfoil.release_receipts(text, text, jsonb) is
'Gives claimed step receipts up at once: [{key, leaseId, runAttempt}, …]. Answers (ordinal, key, receipt) in that order.';

revoke all on function counterfoil.release_receipts(text, text, jsonb) from public;
