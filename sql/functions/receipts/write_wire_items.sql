-- write_wire_items: does a receipt action that writes, but for completions.
--
-- Promises: the receipts as a JSON array, in the order given.
-- Locks:    the receipts' rows, in the order of their keys.
-- Raises:   as fail_receipts, skip_receipts, release_receipts, mark_receipts_running and mark_receipts_queued do.
-- Since:    1

create or replace function counterfoil.write_wire_items(p_org_id text, p_run_id text, p_action text, p_items jsonb)
returns jsonb
language plpgsql
volatile
parallel unsafe
called on null input
security invoker
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_answer jsonb;
begin
    case
        when p_action in ('fail_runtime_step_receipt', 'fail_runtime_step_receipts') then
            select jsonb_agg(t.receipt order by t.ordinal)
            into v_answer
            from counterfoil.settle_receipts(p_org_id, p_run_id, p_items, 'failed', false) as t;
        when p_action = 'skip_runtime_step_receipt' then
            select jsonb_agg(t.receipt order by t.ordinal)
            into v_answer
            from counterfoil.settle_receipts(p_org_id, p_run_id, p_items, 'skipped', true) as t;
        when p_action = 'mark_runtime_step_receipts_running' then
            select jsonb_agg(t.receipt order by t.ordinal)
            into v_answer
            from counterfoil.resume_receipts(p_org_id, p_run_id, p_items, null) as t;
        else
            select jsonb_agg(t.receipt order by t.ordinal)
            into v_answer
            from counterfoil.park_receipts(
                p_org_id, p_run_id, p_items, p_action = 'mark_runtime_step_receipts_queued'
            ) as t;
    end case;

    return coalesce(v_answer, '[]'::jsonb);
end
$function$;

comment on function counterfoil.write_wire_items(text, text, text, jsonb) is
'Fails, skips, releases or queues receipts, or takes them up again, as a receipt action says; the receipts as a JSON array. Private.';

revoke all on function counterfoil.write_wire_items(text, text, text, jsonb) from public;
