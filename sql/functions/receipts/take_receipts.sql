-- take_receipts: claims receipts; the work behind claim_receipts.
--
-- Promises: see claim_receipts.
-- Locks:    receipts that are new, inserted in key order; then those that exist and seem open, in key order; none later.
-- Raises:   RL001, RL004 attempt_lease_not_current, RL008; see claim_receipts.
-- Since:    1

create or replace function counterfoil.take_receipts(
    p_org_id text,
    p_run_id text,
    p_run_attempt integer,
    p_keys text[],
    p_lease_ids text[],
    p_options jsonb
)
returns table (ordinal integer, key text, receipt jsonb, claimed boolean)
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
    v_option text;
    v_index bigint;
    v_keys text[];
    v_lease_ids text[];
    v_aware boolean[];
    v_lease interval;
    v_reclaim_running boolean;
    v_reclaim_own_run boolean;
    v_force_refresh boolean;
    v_force_failed_refresh boolean;
    v_inserted integer;
    v_open text[];
    v_now timestamptz;
begin
    perform counterfoil.check_id(p_org_id, 'p_org_id');
    perform counterfoil.check_id(p_run_id, 'p_run_id');
    perform counterfoil.check_receipt_keys(p_keys, 'p_keys');
    if p_run_attempt is not null then
        perform counterfoil.check_limit(p_run_attempt, 0, 2147483647, 'p_run_attempt');
    end if;
    if p_options is not null and jsonb_typeof(p_options) <> 'object' then
        perform counterfoil.raise_invalid_argument('p_options is no object.', 'p_options', 'Give an object, or nothing.');
    end if;
    select o.key
    into v_option
    from jsonb_each(p_options) as o
    where
        o.value <> 'null'::jsonb and case
            when o.key in ('leaseAware', 'reclaimRunning', 'reclaimOwnRun', 'forceRefresh', 'forceFailedRefresh')
                then jsonb_typeof(o.value) <> 'boolean'
            when o.key = 'leaseSeconds' then jsonb_typeof(o.value) <> 'number'
            when o.key = 'ttlSeconds' then false
            else true
        end
    order by o.key
    limit 1;
    if found then
        perform counterfoil.raise_invalid_argument(
            format('p_options.%s is unknown or of the wrong type.', v_option), 'p_options.' || v_option,
            'Booleans: leaseAware, reclaimRunning, reclaimOwnRun, forceRefresh, forceFailedRefresh; numbers: leaseSeconds, ttlSeconds.'
        );
    end if;
    -- The completion sets it; here it is only looked at, so that nothing is computed in vain.
    if p_options ? 'ttlSeconds' then
        perform counterfoil.check_ttl(p_options -> 'ttlSeconds', 'p_options.ttlSeconds');
    end if;
    if cardinality(p_lease_ids) <> cardinality(p_keys) or array_ndims(p_lease_ids) > 1 then
        perform counterfoil.raise_invalid_argument(
            'p_lease_ids must align with p_keys.', 'p_lease_ids', 'Give one lease id for each key, or none at all.'
        );
    end if;
    if p_options -> 'leaseAware' = 'true'::jsonb and p_lease_ids is null then
        perform counterfoil.raise_invalid_argument(
            'A lease-aware claim carries a lease id for each key.', 'p_lease_ids', 'Give one lease id for each key.'
        );
    end if;
    select l.ordinality - 1
    into v_index
    from unnest(p_lease_ids) with ordinality as l (lease_id, ordinality)
    where coalesce(length(l.lease_id) not between 1 and 200, p_options -> 'leaseAware' = 'true'::jsonb)
    order by l.ordinality
    limit 1;
    if found then
        perform counterfoil.raise_invalid_argument(
            format('p_lease_ids[%s] is no lease id.', v_index), format('p_lease_ids[%s]', v_index),
            'A lease id has 1 to 200 characters; a lease-aware claim carries one for each key.'
        );
    end if;
    if cardinality(p_keys) = 0 then
        return;
    end if;

    v_reclaim_running := coalesce(p_options -> 'reclaimRunning' = 'true'::jsonb, false);
    v_reclaim_own_run := coalesce(p_options -> 'reclaimOwnRun' = 'true'::jsonb, false);
    v_force_refresh := coalesce(p_options -> 'forceRefresh' = 'true'::jsonb, false);
    v_force_failed_refresh := coalesce(p_options -> 'forceFailedRefresh' = 'true'::jsonb, false);
    v_lease := counterfoil.clamp_lease(case
        when jsonb_typeof(p_options -> 'leaseSeconds') = 'number' then counterfoil.whole_number(p_options -> 'leaseSeconds')
        else counterfoil.setting_integer('receipt_lease_seconds')::integer
    end);

    perform counterfoil.prove_attempts(p_org_id, p_run_id, array[p_run_attempt]);

    -- A key asked for twice is one receipt: the first asking claims it. The database makes the missing lease ids.
    if cardinality(p_keys) = 1 then
        v_keys := p_keys;
        v_aware := array[coalesce(p_lease_ids[1] is not null, false)];
        v_lease_ids := array[coalesce(p_lease_ids[1], gen_random_uuid()::text)];
    else
        select array_agg(w.key order by w.key), array_agg(w.lease_id is not null order by w.key), array_agg(
            coalesce(w.lease_id, w.made_id) order by w.key
        )
        into v_keys, v_aware, v_lease_ids
        from (
            select distinct on (g.key) g.key, g.lease_id, gen_random_uuid()::text as made_id
            from unnest(p_keys, p_lease_ids) with ordinality as g (key, lease_id, ordinality)
            order by g.key, g.ordinality
        ) as w;
    end if;

    -- Once; with one key again, where between the look and the answer retention took it away, or its holder gave it up.
    loop
        v_now := clock_timestamp();
        insert into counterfoil.step_receipts as r (
            org_id, key, status, run_id, run_attempt, lease_id, lease_aware, lease_expires_at, created_at, claimed_at, updated_at
        )
        select p_org_id, w.key, 'running', p_run_id, p_run_attempt, w.lease_id, w.aware, v_now + v_lease, v_now, v_now, v_now
        from unnest(v_keys, v_lease_ids, v_aware) with ordinality as w (key, lease_id, aware, ordinality)
        left join lateral (
            select true as is_there
            from counterfoil.step_receipts as e
            where e.org_id = p_org_id and e.key = w.key
            limit 1
        ) as k on true
        where k.is_there is null
        order by w.ordinality
        on conflict on constraint step_receipts_pkey do nothing;
        get diagnostics v_inserted = row_count;

        if v_inserted < cardinality(v_keys) then
            -- v_keys is in order, and so are the locks.
            select array_agg(o.key)
            into v_open
            from unnest(v_keys, v_lease_ids) as w (key, lease_id)
            cross join lateral (
                select r.key
                from counterfoil.step_receipts as r
                where
                    r.org_id = p_org_id and r.key = w.key
                    and counterfoil.receipt_is_open(
                        r, v_now, p_run_id, p_run_attempt, w.lease_id,
                        v_reclaim_running, v_reclaim_own_run, v_force_refresh, v_force_failed_refresh
                    )
                limit 1
                for no key update
            ) as o;
            if v_open is not null then
                -- The waits for the locks are over: by now, and by what the rows say now.
                perform counterfoil.prove_attempts(p_org_id, p_run_id, array[p_run_attempt]);
                v_now := clock_timestamp();
                -- Through the key's own index, whatever the planner thinks: an update joined to a list may read the whole org.
                insert into counterfoil.step_receipts as r (
                    org_id, key, status, run_id, run_attempt, lease_id, lease_aware, lease_expires_at, created_at, claimed_at, updated_at
                )
                select p_org_id, w.key, 'running', p_run_id, p_run_attempt, w.lease_id, w.aware, v_now + v_lease, v_now, v_now, v_now
                from unnest(v_keys, v_lease_ids, v_aware) with ordinality as w (key, lease_id, aware, ordinality)
                where w.key = any(v_open)
                order by w.ordinality
                on conflict on constraint step_receipts_pkey do update
                set
                    status = excluded.status,
                    run_id = excluded.run_id,
                    run_attempt = excluded.run_attempt,
                    lease_id = excluded.lease_id,
                    lease_aware = excluded.lease_aware,
                    lease_expires_at = excluded.lease_expires_at,
                    claims = r.claims + 1,
                    output = null,
                    error = null,
                    error_payload = null,
                    failure_kind = null,
                    settled_lease_id = null,
                    settled_at = null,
                    expires_at = null,
                    claimed_at = excluded.claimed_at,
                    updated_at = excluded.updated_at
                where counterfoil.receipt_is_open(
                    r, v_now, p_run_id, p_run_attempt, excluded.lease_id,
                    v_reclaim_running, v_reclaim_own_run, v_force_refresh, v_force_failed_refresh
                );
            end if;
        end if;

        if cardinality(p_keys) = 1 then
            return query
            select 1, r.key, counterfoil.receipt_document(r, v_now, true, m.mine), m.mine
            from counterfoil.step_receipts as r
            cross join lateral (
                select
                    r.status = 'running' and r.lease_id = v_lease_ids[1]
                    and r.run_id = p_run_id and r.run_attempt is not distinct from p_run_attempt as mine
            ) as m
            where
                r.org_id = p_org_id and r.key = p_keys[1] and (
                    m.mine or not counterfoil.receipt_is_open(
                        r, v_now, p_run_id, p_run_attempt, v_lease_ids[1],
                        v_reclaim_running, v_reclaim_own_run, v_force_refresh, v_force_failed_refresh
                    )
                );
            if found then
                return;
            end if;
        else
            -- Not again: whoever holds some of the keys may not wait for one before them. What was given up or taken away in
            -- between is said to be queued, to be asked for at once.
            return query
            select
                a.ordinal, a.key,
                case
                    when a.is_answered then counterfoil.receipt_document(a.receipt, v_now, true, a.mine)
                    else jsonb_build_object(
                        'key', a.key, 'status', 'queued', 'runId', coalesce((a.receipt).run_id, p_run_id), 'leaseOwnerAttempt', null,
                        'claims', coalesce((a.receipt).claims, 1), 'updatedAt', counterfoil.iso_time(v_now), 'retryAfterMs', 1
                    )
                end,
                a.mine and a.nth = 1
            from (
                select
                    g.ordinality::integer as ordinal, g.key, k.receipt, m.mine,
                    row_number() over (partition by g.key order by g.ordinality) as nth,
                    m.mine or ((k.receipt).key is not null and not counterfoil.receipt_is_open(
                        k.receipt, v_now, p_run_id, p_run_attempt, w.lease_id,
                        v_reclaim_running, v_reclaim_own_run, v_force_refresh, v_force_failed_refresh
                    )) as is_answered
                from unnest(p_keys) with ordinality as g (key, ordinality)
                join unnest(v_keys, v_lease_ids) as w (key, lease_id) on w.key = g.key
                left join lateral (
                    select r as receipt
                    from counterfoil.step_receipts as r
                    where r.org_id = p_org_id and r.key = g.key
                    limit 1
                ) as k on true
                cross join lateral (
                    select coalesce(
                        (k.receipt).status = 'running' and (k.receipt).lease_id = w.lease_id
                        and (k.receipt).run_id = p_run_id and (k.receipt).run_attempt is not distinct from p_run_attempt, false
                    ) as mine
                ) as m
            ) as a
            order by a.ordinal;
            return;
        end if;
    end loop;
end
$function$;

comment on function counterfoil.take_receipts(text, text, integer, text[], text[], jsonb) is
'Claims receipts for an attempt and answers each key in the order asked; the work behind claim_receipts. Private.';

revoke all on function counterfoil.take_receipts(text, text, integer, text[], text[], jsonb) from public;
