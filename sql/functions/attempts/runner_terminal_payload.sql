-- runner_terminal_payload: what a detached runner's terminal says, checked.
--
-- Promises: the payload of the terminal fact that this terminal stands for; p_bounded as terminal_payload() has it.
-- Locks:    nothing.
-- Raises:   RL001, RL008 with the JSON path below p_where.
-- Since:    1

create or replace function counterfoil.runner_terminal_payload(
    p_terminal jsonb, p_attempt integer, p_where text, p_bounded boolean
)
returns jsonb
language plpgsql
volatile
parallel unsafe
called on null input
security invoker
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_payload jsonb := counterfoil.terminal_payload(p_terminal, p_attempt, p_where, p_bounded);
begin
    if coalesce(p_terminal ->> 'status', '') not in ('completed', 'failed', 'suspended') then
        perform counterfoil.raise_invalid_argument(
            format('%s.status must be completed, failed or suspended.', p_where), format('%s.status', p_where),
            'Say how the runner ended.'
        );
    end if;
    if p_terminal ->> 'status' = 'failed' then
        v_payload := v_payload || jsonb_build_object('error', counterfoil.failure_error(p_terminal, p_where));
    end if;
    return v_payload;
end
$function$;

comment on function counterfoil.runner_terminal_payload(jsonb, integer, text, boolean) is
'Payload of the terminal fact that a detached runner''s terminal stands for, checked. Private.';

revoke all on function counterfoil.runner_terminal_payload(jsonb, integer, text, boolean) from public;
