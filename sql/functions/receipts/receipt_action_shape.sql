-- receipt_action_shape: what a receipt action takes.
--
-- Promises: key (one key), keys (a list of them), receipts (a list of writes) or observation for the fourteen actions; null for
--           any other.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.receipt_action_shape(p_action text)
returns text
language sql
immutable
parallel safe
called on null input
security invoker
as $function$
    select case
        when p_action in (
            'get_runtime_step_receipt', 'claim_runtime_step_receipt', 'complete_runtime_step_receipt',
            'release_runtime_step_receipt', 'fail_runtime_step_receipt', 'skip_runtime_step_receipt'
        ) then 'key'
        when p_action in (
            'get_runtime_step_receipts', 'claim_runtime_step_receipts', 'heartbeat_runtime_step_receipts'
        ) then 'keys'
        when p_action in (
            'mark_runtime_step_receipts_running', 'mark_runtime_step_receipts_queued',
            'complete_runtime_step_receipts', 'fail_runtime_step_receipts'
        ) then 'receipts'
        when p_action = 'observe_docflow_node' then 'observation'
    end
$function$;

comment on function counterfoil.receipt_action_shape(text) is
'What a receipt action takes: key, keys, receipts or observation; null for an unknown action. Private.';

revoke all on function counterfoil.receipt_action_shape(text) from public;
