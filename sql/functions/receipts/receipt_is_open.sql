-- receipt_is_open: whether a claim takes a receipt that exists.
--
-- Promises: queued, repairably failed and lapsed ones are open to everybody; a live one only to p_reclaim_running, or to a
--           later attempt of the same run with p_reclaim_own_run; a result only to p_force_refresh or past its time, a
--           terminal failure only to p_force_failed_refresh. What was settled under the very lease that claims is not open:
--           that claim is a repeat.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.receipt_is_open(
    p_receipt counterfoil.step_receipts,
    p_now timestamptz,
    p_run_id text,
    p_run_attempt integer,
    p_lease_id text,
    p_reclaim_running boolean,
    p_reclaim_own_run boolean,
    p_force_refresh boolean,
    p_force_failed_refresh boolean
)
returns boolean
language sql
immutable
parallel safe
called on null input
security invoker
as $function$
    select case (p_receipt).status
        when 'queued' then true
        when 'running' then
            (p_receipt).lease_expires_at <= p_now
            or (p_reclaim_running and (p_receipt).lease_id <> p_lease_id)
            or (
                p_reclaim_own_run and (p_receipt).run_id = p_run_id
                and coalesce((p_receipt).run_attempt < p_run_attempt, false)
            )
        when 'failed' then
            (p_receipt).failure_kind = 'repairable'
            or (p_force_failed_refresh and (p_receipt).settled_lease_id is distinct from p_lease_id)
        else
            coalesce((p_receipt).expires_at <= p_now, false)
            or (p_force_refresh and (p_receipt).settled_lease_id is distinct from p_lease_id)
    end
$function$;

comment on function counterfoil.receipt_is_open(
    counterfoil.step_receipts, timestamptz, text, integer, text, boolean, boolean, boolean, boolean
) is
'Whether a claim with these options, at p_now, takes an existing receipt over rather than getting what it holds. Private.';

revoke all on function counterfoil.receipt_is_open(
    counterfoil.step_receipts, timestamptz, text, integer, text, boolean, boolean, boolean, boolean
) from public;
