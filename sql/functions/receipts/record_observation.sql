-- record_observation: keeps what was seen of a node; the work behind observe_docflow_node.
--
-- Promises: see observe_docflow_node.
-- Locks:    the invocation's row.
-- Raises:   RL001; see observe_docflow_node.
-- Since:    1

create or replace function counterfoil.record_observation(p_org_id text, p_run_id text, p_observation jsonb)
returns boolean
language plpgsql
volatile
parallel unsafe
called on null input
security invoker
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_depth integer := counterfoil.setting_integer('receipt_json_max_depth')::integer;
    v_most integer := counterfoil.setting_integer('preview_max_bytes')::integer;
    v_node_id text;
    v_status text;
    v_attempt integer;
    v_invocation_seq integer;
    v_invocation_id text;
    v_inputs jsonb;
    v_outputs jsonb;
    v_inputs_cut boolean;
    v_outputs_cut boolean;
    v_now timestamptz;
begin
    perform counterfoil.check_id(p_org_id, 'p_org_id');
    perform counterfoil.check_id(p_run_id, 'p_run_id');
    if p_observation is null or jsonb_typeof(p_observation) <> 'object' then
        perform counterfoil.raise_invalid_argument(
            'p_observation is no object.', 'p_observation', 'Give an object with nodeId and status.'
        );
    end if;
    v_node_id := case when jsonb_typeof(p_observation -> 'nodeId') = 'string' then counterfoil.trim_key(p_observation ->> 'nodeId') end;
    perform counterfoil.check_id(v_node_id, 'p_observation.nodeId');
    v_status := p_observation ->> 'status';
    if v_status is null or v_status not in ('started', 'completed', 'failed') then
        perform counterfoil.raise_invalid_argument(
            'p_observation.status is no status.', 'p_observation.status', 'A node is started, completed or failed.'
        );
    end if;
    if jsonb_typeof(p_observation -> 'invocationId') = 'string' then
        -- Whatever it is: better an odd id than no observation.
        v_invocation_id := left(nullif(p_observation ->> 'invocationId', ''), 200);
    end if;
    v_attempt := counterfoil.whole_number(p_observation -> 'attempt');
    v_invocation_seq := counterfoil.whole_number(p_observation -> 'invocationSeq');
    select b.preview, b.is_cut into v_inputs, v_inputs_cut
    from counterfoil.bounded_preview(p_observation -> 'inputs', v_depth, v_most) as b;
    select b.preview, b.is_cut into v_outputs, v_outputs_cut
    from counterfoil.bounded_preview(p_observation -> 'outputs', v_depth, v_most) as b;

    v_now := clock_timestamp();
    insert into counterfoil.observations as o (
        org_id, run_id, attempt, node_id, invocation_seq, invocation_id, status, inputs, outputs,
        inputs_truncated, outputs_truncated, error, observed_at, updated_at
    )
    values (
        p_org_id, p_run_id, v_attempt, v_node_id, v_invocation_seq, v_invocation_id, v_status, v_inputs, v_outputs,
        coalesce(p_observation -> 'inputsTruncated' = 'true'::jsonb, false)
        or v_inputs_cut,
        coalesce(p_observation -> 'outputsTruncated' = 'true'::jsonb, false)
        or v_outputs_cut,
        case
            when jsonb_typeof(p_observation -> 'error') = 'string'
                then counterfoil.bounded_error(p_observation ->> 'error', v_most)
        end,
        coalesce(counterfoil.event_time(p_observation -> 'at'), v_now), v_now
    )
    on conflict on constraint observations_pkey do update
    set
        status = excluded.status,
        invocation_id = coalesce(excluded.invocation_id, o.invocation_id),
        inputs = coalesce(excluded.inputs, o.inputs),
        outputs = coalesce(excluded.outputs, o.outputs),
        inputs_truncated = case when excluded.inputs is null then o.inputs_truncated else excluded.inputs_truncated end,
        outputs_truncated = case when excluded.outputs is null then o.outputs_truncated else excluded.outputs_truncated end,
        error = coalesce(excluded.error, o.error),
        observed_at = excluded.observed_at,
        updated_at = excluded.updated_at
    -- An end stays what it is; what comes late about the start is not news.
    where o.status = 'started' or o.status = excluded.status;

    return found;
end
$function$;

comment on function counterfoil.record_observation(text, text, jsonb) is
'Keeps an observation of a node, never going back from an end; the work behind observe_docflow_node. Private.';

revoke all on function counterfoil.record_observation(text, text, jsonb) from public;
