-- mark_receipts_queued: puts claimed receipts back in line while their step waits its turn.
--
-- Promises: p_receipts is [{key, leaseId, runAttempt}, …]; one answer each, in that order. A queued receipt is open to
--           whoever claims it; until then its holder may take it up again with mark_receipts_running and the same lease id.
--           All are written or none; a repeat answers the same.
-- Locks:    the receipts' rows, in the order of their keys.
-- Raises:   RL001 malformed items; RL002 receipt_not_found; RL004 attempt_lease_not_current or receipt_lease_not_current;
--           RL008 too many items.
-- Since:    1

create or replace function counterfoil.mark_receipts_queued(p_org_id text, p_run_id text, p_receipts jsonb)
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
    from counterfoil.park_receipts(p_org_id, p_run_id, p_receipts, true) as t;
end
$function$;

comment on function counterfoil.mark_receipts_queued(text, text, jsonb) is
'Puts claimed step receipts back in line, their holder''s place kept: [{key, leaseId, runAttempt}, …]. Answers (ordinal, key, receipt) in that order.';

revoke all on function counterfoil.mark_receipts_queued(text, text, jsonb) from public;
