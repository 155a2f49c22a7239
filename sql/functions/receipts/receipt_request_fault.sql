-- receipt_request_fault: what is wrong with a request to the receipt gateway, if anything.
--
-- Promises: no row for a request that may go on; else the status, code, text, hint and field to refuse it with. Scope comes
--           first, so that a stranger learns nothing about shapes: 403 for an incomplete scope, another play, another run, or
--           an item of another run; 400 for a body, key, list or observation of the wrong shape, and for an unknown action. An
--           array is a body without members, and a runId that JavaScript calls falsy is none.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.receipt_request_fault(p_scope jsonb, p_body jsonb)
returns table (status integer, code text, error text, hint text, detail text)
language plpgsql
stable
parallel safe
called on null input
security invoker
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_action text := p_body ->> 'action';
    v_shape text;
    v_index bigint;
    v_field text;
begin
    if p_body is null or jsonb_typeof(p_body) not in ('object', 'array') then
        return query select 400, 'invalid_argument', 'The body must be a JSON object with an action.',
            'Send an object such as {"action": "get_runtime_step_receipt", "playName": …, "key": …}.', 'body';
        return;
    end if;
    if
        coalesce(p_scope ->> 'orgId', '') = '' or coalesce(p_scope ->> 'playName', '') = ''
        or coalesce(p_scope ->> 'runId', '') = ''
    then
        return query select 403, 'scope_incomplete', 'The token does not name org, run and play.',
            'Use the token that the run was given, or mint one for it.', 'scope';
        return;
    end if;
    if p_body -> 'playName' is distinct from p_scope -> 'playName' then
        return query select 403, 'scope_mismatch', 'playName is not the token''s play.',
            'Name the play of the run, or use a token for the other one.', 'playName';
        return;
    end if;
    if
        coalesce(p_body -> 'runId', 'null'::jsonb) not in ('null'::jsonb, '""'::jsonb, '0'::jsonb, 'false'::jsonb)
        and p_body -> 'runId' <> p_scope -> 'runId'
    then
        return query select 403, 'scope_mismatch', 'runId is not the token''s run.',
            'Leave runId out, or use a token for the other run.', 'runId';
        return;
    end if;

    v_shape := counterfoil.receipt_action_shape(v_action);
    case coalesce(v_shape, 'unknown')
        when 'unknown' then
            return query select 400, 'unsupported_action', 'There is no such receipt action.',
                'Give one of the fourteen actions in /openapi.json.', 'action';
        when 'key' then
            if jsonb_typeof(p_body -> 'key') is distinct from 'string' or counterfoil.trim_key(p_body ->> 'key') = '' then
                return query select 400, 'invalid_argument', 'key is no receipt key.', counterfoil.receipt_key_hint(), 'key';
            end if;
        when 'keys' then
            if jsonb_typeof(p_body -> 'keys') is distinct from 'array' then
                return query select 400, 'invalid_argument', 'keys must be an array of receipt keys.',
                    counterfoil.receipt_key_hint(), 'keys';
                return;
            end if;
            select k.ordinality - 1
            into v_index
            from jsonb_array_elements(p_body -> 'keys') with ordinality as k (key, ordinality)
            where jsonb_typeof(k.key) <> 'string' or counterfoil.trim_key(k.key #>> '{}') = ''
            order by k.ordinality
            limit 1;
            if found then
                return query select
                    400, 'invalid_argument', format('keys[%s] is no receipt key.', v_index),
                    counterfoil.receipt_key_hint(), format('keys[%s]', v_index);
            end if;
        when 'receipts' then
            if jsonb_typeof(p_body -> 'receipts') is distinct from 'array' then
                return query select 400, 'invalid_argument', 'receipts must be an array.',
                    'Give an array of objects with key, runId, leaseId and runAttempt.', 'receipts';
                return;
            end if;
            select i.ordinality - 1
            into v_index
            from jsonb_array_elements(p_body -> 'receipts') with ordinality as i (item, ordinality)
            where jsonb_typeof(i.item) <> 'object' or i.item -> 'runId' is distinct from p_scope -> 'runId'
            order by i.ordinality
            limit 1;
            if found then
                return query select
                    403, 'scope_mismatch', format('receipts[%s] is not of the token''s run.', v_index),
                    'Name the token''s run in each of them, and write other runs'' with their own tokens.',
                    format('receipts[%s].runId', v_index);
                return;
            end if;
            select i.ordinality - 1
            into v_index
            from jsonb_array_elements(p_body -> 'receipts') with ordinality as i (item, ordinality)
            where
                jsonb_typeof(i.item -> 'key') is distinct from 'string'
                or counterfoil.trim_key(i.item ->> 'key') = ''
            order by i.ordinality
            limit 1;
            if found then
                return query select
                    400, 'invalid_argument', format('receipts[%s].key is no receipt key.', v_index),
                    counterfoil.receipt_key_hint(), format('receipts[%s].key', v_index);
            end if;
        else
            if jsonb_typeof(p_body -> 'nodeId') is distinct from 'string' or counterfoil.trim_key(p_body ->> 'nodeId') = '' then
                v_field := 'nodeId';
            elsif
                jsonb_typeof(p_body -> 'status') is distinct from 'string'
                or p_body ->> 'status' not in ('started', 'completed', 'failed')
            then
                v_field := 'status';
            end if;
            if v_field is not null then
                return query select
                    400, 'invalid_argument',
                    format('%s is missing or malformed.', v_field),
                    'Give a nodeId, and a status: started, completed or failed.', v_field;
            end if;
    end case;
end
$function$;

comment on function counterfoil.receipt_request_fault(jsonb, jsonb) is
'Scope and shape checks of a receipt gateway request: one row (status, code, error, hint, detail) when it must be refused, else none. Private.';

revoke all on function counterfoil.receipt_request_fault(jsonb, jsonb) from public;
