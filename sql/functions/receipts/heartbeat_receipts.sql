-- heartbeat_receipts: renews leases of receipts that are still being computed.
--
-- Promises: p_receipts is [{key, leaseId, runAttempt}, …]; one answer each, in that order: ok with the receipt, or lost, when the
--           lease has lapsed, was replaced, given back or settled. Those still held are renewed whatever became of the
--           others. A lease is never shortened. p_lease_seconds is clamped to 5…300; null means receipt_lease_seconds.
-- Locks:    the receipts' rows, in the order of their keys.
-- Raises:   RL001 malformed items; RL004 attempt_lease_not_current; RL008 too many items.
-- Since:    1

create or replace function counterfoil.heartbeat_receipts(
    p_org_id text,
    p_run_id text,
    p_receipts jsonb,
    p_lease_seconds integer default null
)
returns table (ordinal integer, key text, outcome text, receipt jsonb)
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
    select t.ordinal, t.key, t.outcome, t.receipt
    from counterfoil.extend_receipts(p_org_id, p_run_id, p_receipts, p_lease_seconds) as t;
end
$function$;

comment on function counterfoil.heartbeat_receipts(text, text, jsonb, integer) is
'Renews the leases of running step receipts: [{key, leaseId, runAttempt}, …]. Answers (ordinal, key, outcome ok or lost, receipt) in that order.';

revoke all on function counterfoil.heartbeat_receipts(text, text, jsonb, integer) from public;
