-- dispatch_receipt_action: the receipt gateway's work; the HTTP side is a shell around it.
--
-- Promises: does one of the fourteen actions for the run that the verified token names (p_scope: orgId, playName, runId)
--           and answers status, headers and body as they go over the wire. A request out of scope gets 403, one of the wrong
--           shape 400, and changes nothing. p_wire_format 1 or 2 returns outputs on completion, 3 and later do not; the
--           header x-counterfoil-receipt-wire-format names the format of the answer. Claims tell with "claimed" whether the
--           caller computes. Reads and claims are counted for health().
-- Locks:    the receipts' rows, in the order of their keys; last one row of the org's counters.
-- Raises:   as claim_receipts, complete_receipts and the others do; receipt_failure_response maps these.
-- Since:    1

create or replace function counterfoil.dispatch_receipt_action(p_scope jsonb, p_body jsonb, p_wire_format integer default 3)
returns table (status integer, headers jsonb, body jsonb)
language plpgsql
volatile
parallel unsafe
called on null input
security definer
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_format integer := greatest(1, least(3, coalesce(p_wire_format, 3)));
    v_headers jsonb := jsonb_build_object('x-counterfoil-receipt-wire-format', v_format::text);
    v_action text := p_body ->> 'action';
    v_org_id text := p_scope ->> 'orgId';
    v_run_id text := p_scope ->> 'runId';
    v_single boolean := counterfoil.receipt_action_shape(v_action) = 'key';
    v_fault record;
    v_keys text[];
    v_lease_ids text[];
    v_items jsonb;
    v_answer jsonb;
    v_tally record;
    v_completion record;
begin
    select f.status, f.code, f.error, f.hint, f.detail
    into v_fault
    from counterfoil.receipt_request_fault(p_scope, p_body) as f;
    if found then
        return query
        select r.status, r.headers, r.body || case v_fault.code
            when 'unsupported_action' then jsonb_build_object('action', left(v_action, 200), 'playName', p_scope -> 'playName')
            else '{}'::jsonb
        end
        from counterfoil.http_refusal(v_fault.status, v_fault.code, v_fault.error, v_fault.hint, v_fault.detail, v_headers) as r;
        return;
    end if;

    if counterfoil.receipt_action_shape(v_action) in ('key', 'keys') then
        select array_agg(counterfoil.trim_key(k.key #>> '{}') order by k.ordinality)
        into v_keys
        from jsonb_array_elements(
            case when v_single then jsonb_build_array(p_body -> 'key') else p_body -> 'keys' end
        ) with ordinality as k (key, ordinality);
        v_keys := coalesce(v_keys, '{}');
    end if;

    case
        when v_action in ('get_runtime_step_receipt', 'get_runtime_step_receipts') then
            select
                coalesce(jsonb_agg(t.receipt order by t.ordinal), '[]'::jsonb) as receipts, count(*) as reads, count(t.receipt) as hits
            into v_tally
            from counterfoil.look_up_receipts(v_org_id, v_keys) as t;
            v_answer := v_tally.receipts;
            perform counterfoil.count_receipts(v_org_id, v_tally.reads, v_tally.hits, 0, 0, 0, 0);
        when v_action in ('claim_runtime_step_receipt', 'claim_runtime_step_receipts') then
            v_lease_ids := counterfoil.wire_lease_ids(p_body, v_keys);
            select
                coalesce(jsonb_agg(t.receipt || jsonb_build_object('claimed', t.claimed) order by t.ordinal), '[]'::jsonb) as receipts,
                count(*) as claims,
                count(*) filter (where t.claimed) as granted,
                count(*) filter (where t.receipt ->> 'status' in ('completed', 'failed', 'skipped')) as memoised
            into v_tally
            from counterfoil.take_receipts(
                v_org_id, v_run_id, counterfoil.wire_attempt(p_body -> 'runAttempt'), v_keys, v_lease_ids,
                counterfoil.wire_options(p_body)
            ) as t;
            v_answer := v_tally.receipts;
            perform counterfoil.count_receipts(
                v_org_id, 0, 0, v_tally.claims, v_tally.granted, v_tally.memoised,
                case when p_body -> 'forceRefresh' = 'true'::jsonb then v_tally.claims else 0 end
            );
        when v_action = 'heartbeat_runtime_step_receipts' then
            v_lease_ids := counterfoil.wire_lease_ids(p_body, v_keys);
            select coalesce(jsonb_agg(jsonb_build_object(
                'key', k.key, 'leaseId', k.lease_id, 'runAttempt', counterfoil.wire_attempt(p_body -> 'runAttempt')
            ) order by k.ordinality), '[]'::jsonb)
            into v_items
            from unnest(v_keys, v_lease_ids) with ordinality as k (key, lease_id, ordinality);
            select coalesce(jsonb_agg(t.receipt order by t.ordinal), '[]'::jsonb)
            into v_answer
            from counterfoil.extend_receipts(
                v_org_id, v_run_id, v_items, (counterfoil.wire_options(p_body) ->> 'leaseSeconds')::integer
            ) as t;
        when v_action = 'observe_docflow_node' then
            perform counterfoil.record_observation(v_org_id, v_run_id, p_body);
            v_answer := '{"ok": true}'::jsonb;
        else
            select coalesce(jsonb_agg(counterfoil.wire_item(i.item) order by i.ordinality), '[]'::jsonb)
            into v_items
            from jsonb_array_elements(
                case when v_single then jsonb_build_array(p_body) else p_body -> 'receipts' end
            ) with ordinality as i (item, ordinality);
            if v_action in ('complete_runtime_step_receipt', 'complete_runtime_step_receipts') then
                select c.status, c.headers, c.body
                into strict v_completion
                from counterfoil.answer_completion(v_org_id, v_run_id, v_items, v_format) as c;
                if v_completion.status <> 200 then
                    return query
                    select r.status, r.headers, r.body
                    from counterfoil.http_answer(v_completion.status, v_completion.body, v_headers || v_completion.headers) as r;
                    return;
                end if;
                v_answer := v_completion.body;
            else
                v_answer := counterfoil.write_wire_items(v_org_id, v_run_id, v_action, v_items);
            end if;
    end case;

    return query
    select r.status, r.headers, r.body
    from counterfoil.http_answer(200, case when v_single then v_answer -> 0 else v_answer end, v_headers) as r;
end
$function$;

comment on function counterfoil.dispatch_receipt_action(jsonb, jsonb, integer) is
'Does one receipt action for the run of the verified token: p_scope {orgId, playName, runId}, p_body {action, …}. Answers (status, headers, body).';

revoke all on function counterfoil.dispatch_receipt_action(jsonb, jsonb, integer) from public;
