-- heartbeat_attempts: extends the leases of many attempts.
--
-- Promises: one row for each attempt, in the order given: ok (extended), cancel_requested (extended too: the holder is to
--           end the run) or lost (the lease ended, was replaced or never was: nothing is extended). A lease never lasts
--           beyond the attempt's time-out. An attempt that another call is just now writing is answered as it stands, and
--           not extended.
-- Locks:    the attempts, skipping what is locked: it waits for nobody.
-- Raises:   RL001.
-- Since:    1

create or replace function counterfoil.heartbeat_attempts(
    p_org_ids text[], p_run_ids text[], p_attempts integer[], p_lease_ids text[], p_lease_seconds integer
)
returns table (org_id text, run_id text, attempt integer, outcome text, lease_expires_at timestamptz)
language plpgsql
volatile
parallel unsafe
called on null input
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_material = off
set jit = off
as $function$
declare
    v_lease interval := counterfoil.clamp_lease(p_lease_seconds);
    v_now timestamptz;
    v_place bigint;
    v_rows tid[];
begin
    if num_nulls(p_org_ids, p_run_ids, p_attempts, p_lease_ids) > 0
        or cardinality(p_run_ids) <> cardinality(p_org_ids)
        or cardinality(p_attempts) <> cardinality(p_org_ids)
        or cardinality(p_lease_ids) <> cardinality(p_org_ids)
    then
        perform counterfoil.raise_invalid_argument(
            'p_org_ids, p_run_ids, p_attempts and p_lease_ids must have the same length.', 'p_org_ids',
            'Give one element of each array for every attempt.'
        );
    end if;
    select g.place into v_place
    from unnest(p_org_ids, p_run_ids, p_attempts, p_lease_ids)
        with ordinality as g (org_id, run_id, attempt, lease_id, place)
    where num_nulls(g.org_id, g.run_id, g.attempt, g.lease_id) > 0
    order by g.place
    limit 1;
    if found then
        perform counterfoil.raise_invalid_argument(
            format('Element %s of the arrays is null.', v_place - 1), format('p_org_ids[%s]', v_place - 1),
            'Give org, run, attempt and lease of every attempt.'
        );
    end if;

    select array_agg(a.row_at) into v_rows
    from unnest(p_org_ids, p_run_ids, p_attempts, p_lease_ids) as g (org_id, run_id, attempt, lease_id)
    cross join lateral (
        select h.ctid as row_at
        from counterfoil.attempts as h
        where h.org_id = g.org_id
            and h.run_id = g.run_id
            and h.attempt = g.attempt
            and h.lease_id = g.lease_id
            and h.status = 'running'
        -- Whoever holds an attempt holds its run, and may want another attempt of this list: to wait here could deadlock.
        for no key update skip locked
    ) as a;
    v_now := clock_timestamp();

    update counterfoil.attempts as a
    set lease_expires_at = least(v_now + v_lease, a.timeout_at), heartbeat_at = v_now
    -- A lease means that it runs; to say so would let a plan made on a small table read the index of all that run.
    where a.ctid = any (v_rows) and a.lease_expires_at > v_now;

    return query
    select
        g.org_id, g.run_id, g.attempt,
        case when a.lease_expires_at is null then 'lost' when r.cancel_requested_at is not null then 'cancel_requested' else 'ok' end,
        a.lease_expires_at
    from unnest(p_org_ids, p_run_ids, p_attempts, p_lease_ids)
        with ordinality as g (org_id, run_id, attempt, lease_id, place)
    left join lateral (
        select h.lease_expires_at
        from counterfoil.attempts as h
        where h.org_id = g.org_id
            and h.run_id = g.run_id
            and h.attempt = g.attempt
            and h.lease_id = g.lease_id
            and h.status = 'running'
            and h.lease_expires_at > v_now
        limit 1
    ) as a on true
    left join lateral (
        select k.cancel_requested_at
        from counterfoil.runs as k
        where k.org_id = g.org_id and k.run_id = g.run_id
        limit 1
    ) as r on true
    order by g.place;
end
$function$;

comment on function counterfoil.heartbeat_attempts(text[], text[], integer[], text[], integer) is
'Extends the leases of many attempts (parallel arrays) by p_lease_seconds (5 to 300). One row each, in order: ok, cancel_requested or lost.';

revoke all on function counterfoil.heartbeat_attempts(text[], text[], integer[], text[], integer) from public;
