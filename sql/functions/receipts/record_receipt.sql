-- record_receipt: keeps the result of a step that was computed without a claim.
--
-- Promises: for keys that one run alone uses. What the attempt's lease keeps from everybody else needs no lease of its own,
--           so this does at once what a claim with reclaimRunning before the step and a completion after it would, under the
--           attempt's lease id. Answers {status, output}, the output as it was kept. A receipt that was settled before
--           stays and is answered instead ({status, output} or {status, error, errorPayload, failureKind}); a repeat
--           answers as the first did, also when it comes after the attempt has ended. Outputs are sanitised: see
--           complete_receipts.
-- Locks:    the attempt, for key share, so that heartbeats go on and recall_receipts waits; then the receipt.
-- Raises:   RL001 malformed arguments; RL003 receipt_settled_otherwise; RL004 attempt_lease_not_current; RL008 an output over
--           receipt_output_max_bytes.
-- Since:    1

create or replace function counterfoil.record_receipt(
    p_org_id text,
    p_run_id text,
    p_attempt integer,
    p_lease_id text,
    p_key text,
    p_output jsonb
)
returns jsonb
language plpgsql
volatile
parallel unsafe
called on null input
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $function$
declare
    v_held_until timestamptz;
    v_output jsonb := nullif(p_output, 'null'::jsonb);
    v_most integer;
    v_now timestamptz;
    v_answer jsonb;
    v_claimed boolean;
begin
    -- In one expression: the checks that say what is wrong cost a call each.
    if
        not counterfoil.is_id(p_org_id) or not counterfoil.is_id(p_run_id) or not counterfoil.is_id(p_lease_id)
        or not counterfoil.is_receipt_key(p_key) or coalesce(p_attempt < 1, true)
    then
        perform counterfoil.check_id(p_org_id, 'p_org_id');
        perform counterfoil.check_id(p_run_id, 'p_run_id');
        perform counterfoil.check_limit(p_attempt, 1, 2147483647, 'p_attempt');
        perform counterfoil.check_id(p_lease_id, 'p_lease_id');
        perform counterfoil.check_receipt_keys(array[p_key], 'p_key');
    end if;
    if v_output is not null then
        v_most := counterfoil.setting_integer('receipt_output_max_bytes')::integer;
        if counterfoil.json_bytes(v_output) > v_most then
            perform counterfoil.raise_payload_too_large(
                format(
                    'The output of step ''%s'' has %s bytes; it may have %s.', left(p_key, 200),
                    counterfoil.json_bytes(v_output), v_most
                ),
                'p_output', 'Return where larger things lie, or raise the setting receipt_output_max_bytes.'
            );
        end if;
        v_output := counterfoil.sanitize_payload(
            v_output, counterfoil.setting_integer('receipt_json_max_depth')::integer
        );
        perform counterfoil.check_document(v_output, 'p_output');
    end if;

    select a.lease_expires_at
    into v_held_until
    from counterfoil.attempts as a
    where
        a.org_id = p_org_id and a.run_id = p_run_id and a.attempt = p_attempt
        and a.status = 'running' and a.lease_id = p_lease_id
    for key share;
    v_now := clock_timestamp();
    if coalesce(v_held_until <= v_now, true) then
        -- A repeat, unless nothing was settled under this lease.
        perform
        from counterfoil.step_receipts as r
        where
            r.org_id = p_org_id and r.key = p_key and r.run_id = p_run_id
            and r.settled_lease_id = p_lease_id and r.status = 'completed';
        if not found then
            perform counterfoil.raise_lease_lost(
                'The attempt does not hold its run any more.', 'attempt_lease_not_current',
                'Stop working on this run: its lease lapsed, was replaced, or the run has ended.'
            );
        end if;
    else
        insert into counterfoil.step_receipts as r (
            org_id, key, status, run_id, run_attempt, lease_id, lease_aware, output, settled_lease_id,
            created_at, claimed_at, updated_at, settled_at
        )
        values (
            p_org_id, p_key, 'completed', p_run_id, p_attempt, p_lease_id, true, v_output, p_lease_id,
            v_now, v_now, v_now, v_now
        )
        on conflict on constraint step_receipts_pkey do nothing;
        if found then
            return jsonb_build_object('status', 'completed', 'output', v_output);
        end if;

        -- There is one already: the long way, by the rules of claims and completions.
        select t.receipt, t.claimed
        into v_answer, v_claimed
        from counterfoil.take_receipts(
            p_org_id, p_run_id, p_attempt, array[p_key], array[p_lease_id], '{"leaseAware": true, "reclaimRunning": true}'
        ) as t;
        if not v_claimed then
            perform
            from counterfoil.step_receipts as r
            where r.org_id = p_org_id and r.key = p_key and r.settled_lease_id = p_lease_id;
            if not found then
                return v_answer - '{key,runId,leaseOwnerAttempt,claims,updatedAt,settledAt,leaseId,expiresAt}'::text[];
            end if;
        end if;
    end if;

    select t.receipt
    into v_answer
    from counterfoil.settle_receipts(
        p_org_id, p_run_id, jsonb_build_array(jsonb_build_object(
            'key', p_key, 'leaseId', p_lease_id, 'runAttempt', p_attempt, 'output', p_output
        )), 'completed', true
    ) as t;
    return jsonb_build_object('status', v_answer -> 'status', 'output', v_answer -> 'output');
end
$function$;

comment on function counterfoil.record_receipt(text, text, integer, text, text, jsonb) is
'Keeps the result of a step that was computed under the attempt''s lease alone, for keys of this one run. Answers {status, output}, or what was settled before.';

revoke all on function counterfoil.record_receipt(text, text, integer, text, text, jsonb) from public;
