-- mark_receipts_running: takes receipts up again that were marked queued.
--
-- Promises: p_receipts is [{key, leaseId, runAttempt}, …]; one answer each, in that order. A receipt that nobody claimed
--           meanwhile runs under a new period of its old lease; one that runs already is renewed. All are written or none.
-- Locks:    the receipts' rows, in the order of their keys.
-- Raises:   RL001 malformed items; RL002 receipt_not_found; RL004 attempt_lease_not_current or receipt_lease_not_current;
--           RL008 too many items.
-- Since:    1

create or replace function counterfoil.mark_receipts_running(
    p_org_id text,
    p_run_id text,
    p_receipts jsonb,
    p_lease_seconds integer default null
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
    from counterfoil.resume_receipts(p_org_id, p_run_id, p_receipts, p_lease_seconds) as t;
end
$function$;

comment on function counterfoil.mark_receipts_running(text, text, jsonb, integer) is
'Takes queued step receipts up again under their lease ids: [{key, leaseId, runAttempt}, …]. Answers (ordinal, key, receipt) in that order.';

revoke all on function counterfoil.mark_receipts_running(text, text, jsonb, integer) from public;
