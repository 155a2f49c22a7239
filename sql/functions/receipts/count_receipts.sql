-- count_receipts: keeps the gateway's accounts of reads and claims.
--
-- Promises: adds to one of the org's sixteen rows, chosen by session, so that requests seldom meet there.
-- Locks:    that row; last in its transaction.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.count_receipts(
    p_org_id text,
    p_reads bigint,
    p_read_hits bigint,
    p_claims bigint,
    p_claims_granted bigint,
    p_claims_memoised bigint,
    p_claims_forced bigint
)
returns void
language plpgsql
volatile
parallel unsafe
called on null input
security invoker
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_shard smallint := (pg_backend_pid() % 16)::smallint;
begin
    insert into counterfoil.receipt_counters as k (
        org_id, shard, reads, read_hits, claims, claims_granted, claims_memoised, claims_forced
    )
    values (p_org_id, v_shard, p_reads, p_read_hits, p_claims, p_claims_granted, p_claims_memoised, p_claims_forced)
    on conflict on constraint receipt_counters_pkey do update
    set
        reads = k.reads + excluded.reads,
        read_hits = k.read_hits + excluded.read_hits,
        claims = k.claims + excluded.claims,
        claims_granted = k.claims_granted + excluded.claims_granted,
        claims_memoised = k.claims_memoised + excluded.claims_memoised,
        claims_forced = k.claims_forced + excluded.claims_forced;
end
$function$;

comment on function counterfoil.count_receipts(text, bigint, bigint, bigint, bigint, bigint, bigint) is
'Adds to an org''s counts of receipt reads, read hits, claims, and claims granted, memoised and forced. Private.';

revoke all on function counterfoil.count_receipts(text, bigint, bigint, bigint, bigint, bigint, bigint) from public;
