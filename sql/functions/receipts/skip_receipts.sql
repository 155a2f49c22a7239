-- skip_receipts: remembers that steps were not needed.
--
-- Promises: p_receipts is [{key, leaseId, runAttempt, output, ttlSeconds}, …]; one answer each, in that order. Like
--           complete_receipts, but for the status.
-- Locks:    the receipts' rows, in the order of their keys.
-- Raises:   as complete_receipts does.
-- Since:    1

create or replace function counterfoil.skip_receipts(p_org_id text, p_run_id text, p_receipts jsonb)
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
    from counterfoil.settle_receipts(p_org_id, p_run_id, p_receipts, 'skipped', true) as t;
end
$function$;

comment on function counterfoil.skip_receipts(text, text, jsonb) is
'Marks step receipts as skipped under their leases: [{key, leaseId, runAttempt, output, ttlSeconds}, …]. Answers (ordinal, key, receipt) in that order.';

revoke all on function counterfoil.skip_receipts(text, text, jsonb) from public;
