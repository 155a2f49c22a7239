-- heartbeat_attempts: extends the leases of many attempts.
--
-- Promises: one row for each attempt, in the order given: ok (extended), cancel_requested (extended too: the holder is to
--           end the run) or lost (the lease ended, was replaced or never was: nothing is extended). A lease never lasts
--           beyond the attempt's time-out.
-- Locks:    the attempts, in order of (org, run, attempt); no run.
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
set jit = off
as $function$
declare
    v_lease interval := counterfoil.clamp_lease(p_lease_seconds);
    v_now timestamptz;
    v_place bigint;
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

    -- In one order for everybody; the clock is read when the last is held.
    perform
    from (
        select distinct h.org_id, h.run_id, h.attempt
        from unnest(p_org_ids, p_run_ids, p_attempts) as h (org_id, run_id, attempt)
        order by h.org_id, h.run_id, h.attempt
    ) as g
    cross join lateral (
        select a.attempt
        from counterfoil.attempts as a
        where a.org_id = g.org_id and a.run_id = g.run_id and a.attempt = g.attempt
        for no key update
    ) as a;
    v_now := clock_timestamp();

    return query
    with held as materialized (
        select g.place, g.org_id, g.run_id, g.attempt, a.row_at, a.ends_at
        from unnest(p_org_ids, p_run_ids, p_attempts, p_lease_ids)
            with ordinality as g (org_id, run_id, attempt, lease_id, place)
        left join lateral (
            select h.ctid as row_at, least(v_now + v_lease, h.timeout_at) as ends_at
            from counterfoil.attempts as h
            where h.org_id = g.org_id
                and h.run_id = g.run_id
                and h.attempt = g.attempt
                and h.lease_id = g.lease_id
                and h.status = 'running'
                and h.lease_expires_at > v_now
            limit 1
        ) as a on true
    ),

    extended as (
        update counterfoil.attempts as a
        set lease_expires_at = h.ends_at, heartbeat_at = v_now
        from (select distinct d.row_at, d.ends_at from held as d where d.row_at is not null) as h
        where a.ctid = h.row_at
    )

    select
        h.org_id, h.run_id, h.attempt,
        case when h.row_at is null then 'lost' when r.cancel_requested_at is not null then 'cancel_requested' else 'ok' end,
        h.ends_at
    from held as h
    left join lateral (
        select k.cancel_requested_at
        from counterfoil.runs as k
        where k.org_id = h.org_id and k.run_id = h.run_id
        limit 1
    ) as r on true
    order by h.place;
end
$function$;

comment on function counterfoil.heartbeat_attempts(text[], text[], integer[], text[], integer) is
'Extends the leases of many attempts (parallel arrays) by p_lease_seconds (5 to 300). One row each, in order: ok, cancel_requested or lost.';

revoke all on function counterfoil.heartbeat_attempts(text[], text[], integer[], text[], integer) from public;
