-- settle_receipts: completes, fails or skips receipts; the work behind the three functions of those names.
--
-- Promises: every write proves run, attempt and lease, or nothing is written at all. A repeat of what settled a receipt
--           answers the same and writes nothing, even after the attempt has ended; a different result under the
--           same lease is refused. Outputs and errors are sanitised before they are kept.
-- Locks:    the receipts' rows, in the order of their keys.
-- Raises:   RL001 malformed items; RL002 receipt_not_found; RL003 receipt_settled_otherwise; RL004 attempt_lease_not_current
--           or receipt_lease_not_current; RL008 an output over receipt_output_max_bytes, or too many items.
-- Since:    1

create or replace function counterfoil.settle_receipts(
    p_org_id text,
    p_run_id text,
    p_receipts jsonb,
    p_status text,
    p_return_output boolean
)
returns table (ordinal integer, key text, receipt jsonb)
language plpgsql
volatile
parallel unsafe
called on null input
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $function$
declare
    v_depth integer;
    v_most integer;
    v_keys text[];
    v_lease_ids text[];
    v_attempts integer[];
    v_outputs jsonb[];
    v_errors text[];
    v_error_payloads jsonb[];
    v_failure_kinds text[];
    v_ttls numeric[];
    v_standings text[];
    v_index bigint;
    v_size integer;
    v_key text;
    v_now timestamptz;
begin
    perform counterfoil.check_id(p_org_id, 'p_org_id');
    perform counterfoil.check_id(p_run_id, 'p_run_id');
    perform counterfoil.check_receipt_items(p_receipts);
    if p_receipts = '[]'::jsonb then
        return;
    end if;
    if p_status = 'failed' then
        perform counterfoil.check_receipt_failures(p_receipts);
    end if;

    v_depth := counterfoil.setting_integer('receipt_json_max_depth')::integer;
    v_most := counterfoil.setting_integer('receipt_output_max_bytes')::integer;
    if p_status <> 'failed' and octet_length(p_receipts::text) > v_most then
        select i.ordinality - 1, counterfoil.json_bytes(i.item -> 'output'), i.item ->> 'key'
        into v_index, v_size, v_key
        from jsonb_array_elements(p_receipts) with ordinality as i (item, ordinality)
        where counterfoil.json_bytes(i.item -> 'output') > v_most
        order by i.ordinality
        limit 1;
        if found then
            perform counterfoil.raise_payload_too_large(
                format('The output of step ''%s'' has %s bytes; it may have %s.', left(v_key, 200), v_size, v_most),
                format('p_receipts[%s].output', v_index),
                'Return where larger things lie, or raise the setting receipt_output_max_bytes.'
            );
        end if;
    end if;

    select
        array_agg(i.item ->> 'key'),
        array_agg(i.item ->> 'leaseId'),
        array_agg((i.item ->> 'runAttempt')::integer),
        array_agg((i.item ->> 'ttlSeconds')::numeric),
        array_agg(case
            when p_status <> 'failed' then counterfoil.sanitize_payload(nullif(i.item -> 'output', 'null'::jsonb), v_depth)
        end),
        array_agg(case when p_status = 'failed' then counterfoil.bounded_error(coalesce(i.item ->> 'error', ''), 8192) end),
        array_agg(case
            when p_status = 'failed' then counterfoil.bounded_error_payload(i.item -> 'errorPayload', v_depth, v_most)
        end),
        array_agg(case when p_status = 'failed' then coalesce(i.item ->> 'failureKind', 'terminal') end)
    into v_keys, v_lease_ids, v_attempts, v_ttls, v_outputs, v_errors, v_error_payloads, v_failure_kinds
    from (
        -- Sorted once for all aggregates.
        select e.item
        from jsonb_array_elements(p_receipts) with ordinality as e (item, ordinality)
        order by e.ordinality
    ) as i;

    perform counterfoil.check_document(d.document, format('p_receipts[%s].%s', d.place - 1, d.field))
    from (
        select o.output as document, 'output' as field, o.place
        from unnest(v_outputs) with ordinality as o (output, place)
        union all
        select e.error_payload, 'errorPayload', e.place
        from unnest(v_error_payloads) with ordinality as e (error_payload, place)
    ) as d;

    v_standings := counterfoil.lock_receipts(
        p_org_id, p_run_id, v_keys, v_lease_ids, v_attempts, array['held', 'settled']
    );

    if 'held' = any(v_standings) then
        perform counterfoil.prove_attempts(p_org_id, p_run_id, v_attempts);
        v_now := clock_timestamp();
        -- Through the key's own index, whatever the planner thinks: an update joined to a list may read the whole org.
        insert into counterfoil.step_receipts as r (
            org_id, key, status, run_id, output, error, error_payload, failure_kind,
            created_at, claimed_at, updated_at, settled_at, expires_at
        )
        select distinct on (g.key)
            p_org_id, g.key, p_status, p_run_id, g.output, g.error, g.error_payload, g.failure_kind,
            v_now, v_now, v_now, v_now, v_now + make_interval(secs => g.ttl::double precision)
        from unnest(v_keys, v_standings, v_outputs, v_errors, v_error_payloads, v_failure_kinds, v_ttls)
            with ordinality as g (key, standing, output, error, error_payload, failure_kind, ttl, ordinality)
        where g.standing = 'held'
        order by g.key, g.ordinality
        on conflict on constraint step_receipts_pkey do update
        set
            status = excluded.status,
            output = excluded.output,
            error = excluded.error,
            error_payload = excluded.error_payload,
            failure_kind = excluded.failure_kind,
            lease_expires_at = null,
            settled_lease_id = r.lease_id,
            settled_at = excluded.settled_at,
            expires_at = excluded.expires_at,
            updated_at = excluded.updated_at
        where r.status = 'running' and r.run_id = excluded.run_id;
    end if;

    -- Repeats, and a key given twice: only the same again.
    if 'settled' = any(v_standings) or cardinality(v_keys) > 1 then
        select g.ordinality - 1
        into v_index
        from unnest(v_keys, v_outputs, v_errors, v_error_payloads, v_failure_kinds)
            with ordinality as g (key, output, error, error_payload, failure_kind, ordinality)
        cross join lateral (
            select e.status, e.output, e.error, e.error_payload, e.failure_kind
            from counterfoil.step_receipts as e
            where e.org_id = p_org_id and e.key = g.key
            limit 1
        ) as r
        where
            r.status <> p_status
            or (r.output, r.error, r.error_payload, r.failure_kind)
            is distinct from (g.output, g.error, g.error_payload, g.failure_kind)
        order by g.ordinality
        limit 1;
        if found then
            perform counterfoil.raise_identity_conflict(
                format('p_receipts[%s] was settled otherwise under this lease.', v_index), 'receipt_settled_otherwise',
                'A settled receipt never changes; claim it with forceRefresh to compute it anew.'
            );
        end if;
    end if;

    return query
    select g.ordinality::integer, g.key, counterfoil.receipt_document(k.receipt, v_now, p_return_output, true)
    from unnest(v_keys) with ordinality as g (key, ordinality)
    cross join lateral (
        select r as receipt
        from counterfoil.step_receipts as r
        where r.org_id = p_org_id and r.key = g.key
        limit 1
    ) as k
    order by g.ordinality;
end
$function$;

comment on function counterfoil.settle_receipts(text, text, jsonb, text, boolean) is
'Settles receipts as completed, failed or skipped under their leases; the work behind complete_, fail_ and skip_receipts. Private.';

revoke all on function counterfoil.settle_receipts(text, text, jsonb, text, boolean) from public;
