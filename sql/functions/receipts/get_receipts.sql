-- get_receipts: reads receipts.
--
-- Promises: one answer per key, in the order asked; null for a key without a receipt or with one past its time. Lease ids
--           are not told: they are their holders' proof.
-- Locks:    nothing.
-- Raises:   RL001 malformed arguments; RL008 too many keys.
-- Since:    1

create or replace function counterfoil.get_receipts(p_org_id text, p_keys text[])
returns table (ordinal integer, key text, receipt jsonb)
language plpgsql
stable
parallel safe
called on null input
security definer
set search_path = pg_catalog, pg_temp
as $function$
begin
    -- PL/pgSQL keeps the plan; an SQL function would be planned anew in every call.
    return query
    select t.ordinal, t.key, t.receipt
    from counterfoil.look_up_receipts(p_org_id, p_keys) as t;
end
$function$;

comment on function counterfoil.get_receipts(text, text[]) is
'Reads step receipts: (ordinal, key, receipt) in the order asked, receipt null where there is none.';

revoke all on function counterfoil.get_receipts(text, text[]) from public;
