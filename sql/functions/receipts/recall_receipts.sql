-- recall_receipts: what is settled among the keys of one run.
--
-- Promises: an array of the receipts whose keys begin with p_prefix, were last held by the run, and are completed, skipped
--           or failed for good; as get_receipts shows them, in key order. Null when there are more than p_limit receipts of the
--           prefix, or when their outputs and errors take more than p_max_bytes in the table: then ask for each.
--           It waits for what earlier holders of the run are recording (record_receipt) and sees it; the caller has
--           claimed the run, so they can record nothing more.
-- Locks:    the run's attempts, in order, but for a running one that was claimed once: before it there was nobody.
-- Raises:   RL001 malformed arguments.
-- Since:    1

create or replace function counterfoil.recall_receipts(
    p_org_id text,
    p_run_id text,
    p_prefix text,
    p_limit integer,
    p_max_bytes integer
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
set enable_bitmapscan = off
set jit = off
as $function$
declare
    v_now timestamptz;
    v_found bigint;
    v_bytes bigint;
    v_receipts jsonb;
begin
    perform counterfoil.check_id(p_org_id, 'p_org_id');
    perform counterfoil.check_id(p_run_id, 'p_run_id');
    perform counterfoil.check_receipt_keys(array[p_prefix], 'p_prefix');
    perform counterfoil.check_limit(p_limit, 1, 10000, 'p_limit');
    perform counterfoil.check_limit(p_max_bytes, 1, 1073741823, 'p_max_bytes');

    perform
    from counterfoil.attempts as a
    where a.org_id = p_org_id and a.run_id = p_run_id and (a.status <> 'running' or a.claims > 1)
    order by a.attempt
    for update;
    v_now := clock_timestamp();
    select count(*), sum(coalesce(pg_column_size(w.output), 0) + coalesce(pg_column_size(w.error_payload), 0))
    into v_found, v_bytes
    from (
        select r.output, r.error_payload
        from counterfoil.step_receipts as r
        where r.org_id = p_org_id and r.key >= p_prefix and r.key < p_prefix || chr(1114111)
        order by r.key
        limit p_limit + 1
    ) as w;
    if v_found > p_limit or v_bytes > p_max_bytes then
        return null;
    elsif v_found = 0 then
        return '[]'::jsonb;
    end if;

    select jsonb_agg(counterfoil.receipt_document(r, v_now, true, false) order by r.key)
    into v_receipts
    from counterfoil.step_receipts as r
    where
        r.org_id = p_org_id and r.key >= p_prefix and r.key < p_prefix || chr(1114111) and r.run_id = p_run_id
        and coalesce(r.expires_at > v_now, true)
        and (r.status in ('completed', 'skipped') or (r.status = 'failed' and r.failure_kind = 'terminal'));
    return coalesce(v_receipts, '[]'::jsonb);
end
$function$;

comment on function counterfoil.recall_receipts(text, text, text, integer, integer) is
'Settled receipts of a run whose keys begin with p_prefix, as a JSON array in key order; null when there are too many to send at once.';

revoke all on function counterfoil.recall_receipts(text, text, text, integer, integer) from public;
