-- observe_docflow_node: keeps what was seen of a node of a play's graph.
--
-- Promises: one row an invocation (attempt, nodeId, invocationSeq) with its status, bounded and sanitised previews of inputs and
--           outputs, and whether they were cut. started may become completed or failed; an end never changes, whatever
--           comes late. Answers whether the observation was news. p_observation: {nodeId, status, attempt, invocationSeq,
--           invocationId, inputs, outputs, inputsTruncated, outputsTruncated, error, at (ms since 1970)}.
-- Locks:    the invocation's row.
-- Raises:   RL001 without a nodeId or a known status.
-- Since:    1

create or replace function counterfoil.observe_docflow_node(p_org_id text, p_run_id text, p_observation jsonb)
returns boolean
language plpgsql
volatile
parallel unsafe
called on null input
security definer
set search_path = pg_catalog, pg_temp
as $function$
begin
    -- PL/pgSQL keeps the plan; an SQL function would be planned anew in every call.
    return counterfoil.record_observation(p_org_id, p_run_id, p_observation);
end
$function$;

comment on function counterfoil.observe_docflow_node(text, text, jsonb) is
'Keeps an observation of a node of a play''s graph: {nodeId, status, attempt, invocationSeq, inputs, outputs, …}. Answers whether it was news.';

revoke all on function counterfoil.observe_docflow_node(text, text, jsonb) from public;
