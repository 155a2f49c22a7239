-- claim_receipts: asks for the results of steps, or for the right to compute them.
--
-- Promises: one answer per key, in the order asked; a key asked for twice is claimed once. claimed = true means that the
--           caller now holds the receipt's lease and computes it. Otherwise the receipt says what there is: a result
--           or a terminal failure (memoised), or somebody's live lease, to be asked for again after retryAfterMs. Of several
--           keys one may be queued: it was given up while the call waited for another; ask again, it is open.
--           A new, queued, repairably failed, lapsed or outdated receipt is claimed. Options (p_options): forceRefresh claims
--           results too, forceFailedRefresh terminal failures, reclaimRunning takes live leases over, reclaimOwnRun those
--           of earlier attempts of the same run; leaseSeconds (clamped to 5…300); leaseAware demands a lease id for each key;
--           ttlSeconds is what the completion is to give, refused here already if it can be none.
--           A claim repeated with the same lease ids answers as the first did. Where a lease id is null the
--           database makes one, and later writes may leave it out.
-- Locks:    receipts, in key order: first new ones, then those that exist and seem open.
-- Raises:   RL001 malformed arguments; RL004 attempt_lease_not_current when the run is known here and p_run_attempt is
--           not its live attempt; RL008 too many keys.
-- Since:    1

create or replace function counterfoil.claim_receipts(
    p_org_id text,
    p_run_id text,
    p_run_attempt integer,
    p_keys text[],
    p_lease_ids text[] default null,
    p_options jsonb default null
)
returns table (ordinal integer, key text, receipt jsonb, claimed boolean)
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
    select t.ordinal, t.key, t.receipt, t.claimed
    from counterfoil.take_receipts(p_org_id, p_run_id, p_run_attempt, p_keys, p_lease_ids, p_options) as t;
end
$function$;

comment on function counterfoil.claim_receipts(text, text, integer, text[], text[], jsonb) is
'Claims step receipts for an attempt, or answers what is known of them: (ordinal, key, receipt, claimed) in the order asked.';

revoke all on function counterfoil.claim_receipts(text, text, integer, text[], text[], jsonb) from public;
