-- answer_completion: completes receipts for the gateway and says so.
--
-- Promises: 200 with the completed receipts; with their outputs in wire formats before 3.
-- Locks:    the receipts' rows, in the order of their keys.
-- Raises:   as complete_receipts does.
-- Since:    1

create or replace function counterfoil.answer_completion(
    p_org_id text,
    p_run_id text,
    p_receipts jsonb,
    p_wire_format integer
)
returns table (status integer, headers jsonb, body jsonb)
language plpgsql
volatile
parallel unsafe
called on null input
security invoker
set search_path = pg_catalog, pg_temp
as $function$
begin
    -- PL/pgSQL keeps the plan; an SQL function would be planned anew in every call.
    return query
    select 200, '{}'::jsonb, coalesce(jsonb_agg(t.receipt order by t.ordinal), '[]'::jsonb)
    from counterfoil.settle_receipts(p_org_id, p_run_id, p_receipts, 'completed', p_wire_format < 3) as t;
end
$function$;

comment on function counterfoil.answer_completion(text, text, jsonb, integer) is
'Completes receipts for the gateway: (status, headers, body), body an array in the order given. Private.';

revoke all on function counterfoil.answer_completion(text, text, jsonb, integer) from public;
