-- start_attempts: makes runs that were taken from the queue run.
--
-- Promises: one row a run, in the order given. A queued run gets attempt 1 and run.started; a run between attempts the
--           next one; a suspended run its attempt back under a new lease, with run.resumed after a public wait.
-- Locks:    the caller holds the runs; then their attempts, then lanes.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.start_attempts(
    p_worker text, p_org_ids text[], p_run_ids text[], p_lease interval
)
returns table (
    org_id text,
    run_id text,
    attempt integer,
    lease_id text,
    lease_expires_at timestamptz,
    play_name text,
    launch jsonb,
    context jsonb,
    resumed jsonb
)
language plpgsql
volatile
parallel unsafe
strict
security invoker
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
    v_now timestamptz := clock_timestamp();
    v_rows tid[];
    v_attempts integer[];
    v_lease_ids text[];
    v_kinds text[];
    v_waits text[];
    v_org record;
begin
    select
        array_agg(r.row_at order by g.place),
        array_agg(case when r.wait_kind in ('public', 'detached_runner') then r.attempt else r.attempt + 1 end order by g.place),
        array_agg(gen_random_uuid()::text order by g.place),
        array_agg(coalesce(r.wait_kind, 'first') order by g.place),
        array_agg(r.wait_id order by g.place)
    into v_rows, v_attempts, v_lease_ids, v_kinds, v_waits
    from unnest(p_org_ids, p_run_ids) with ordinality as g (org_id, run_id, place)
    cross join lateral (
        select h.ctid as row_at, h.attempt, h.wait_kind, h.wait_id
        from counterfoil.runs as h
        where h.org_id = g.org_id and h.run_id = g.run_id
        limit 1
    ) as r;

    update counterfoil.runs as r
    set
        status = 'running',
        attempt = g.attempt,
        started_at = coalesce(r.started_at, v_now),
        wait_kind = null,
        wait_id = null,
        wait_reason = null,
        wait_event = null,
        waiting_since = null,
        wake_at = null
    from unnest(v_rows, v_attempts) as g (row_at, attempt)
    where r.ctid = g.row_at and r.status in ('queued', 'waiting');

    insert into counterfoil.attempts as a (
        org_id, run_id, attempt, status, worker, release_lane, lease_id, lease_expires_at, claimed_at, heartbeat_at,
        timeout_at
    )
    select
        r.org_id, r.run_id, r.attempt, 'running', p_worker, r.release_lane, g.lease_id,
        least(v_now + p_lease, v_now + make_interval(secs => r.attempt_timeout_seconds)), v_now, v_now,
        v_now + make_interval(secs => r.attempt_timeout_seconds)
    from unnest(p_org_ids, p_run_ids, v_lease_ids) with ordinality as g (org_id, run_id, lease_id, place)
    cross join lateral (
        select h.org_id, h.run_id, h.attempt, h.release_lane, h.attempt_timeout_seconds
        from counterfoil.runs as h
        where h.org_id = g.org_id and h.run_id = g.run_id
        limit 1
    ) as r
    order by g.place
    on conflict on constraint attempts_pkey do update
    set
        status = 'running',
        worker = excluded.worker,
        lease_id = excluded.lease_id,
        lease_expires_at = excluded.lease_expires_at,
        claims = a.claims + 1,
        claimed_at = excluded.claimed_at,
        heartbeat_at = excluded.heartbeat_at,
        timeout_at = excluded.timeout_at;

    -- A wait that nobody ended was ended by the clock.
    update counterfoil.run_waits as w
    set ended_at = v_now, outcome = 'timed_out'
    from (
        select h.row_at
        from unnest(p_org_ids, p_run_ids, v_waits) as g (org_id, run_id, wait_id)
        cross join lateral (
            select k.ctid as row_at
            from counterfoil.run_waits as k
            where k.org_id = g.org_id and k.run_id = g.run_id and k.wait_id = g.wait_id and k.outcome is null
            limit 1
        ) as h
    ) as f
    where w.ctid = f.row_at;

    for v_org in
        select
            f.org_id,
            array_agg(f.run_id order by f.place) as run_ids,
            array_agg(f.event_type || ':' || gen_random_uuid()::text order by f.place) as event_ids,
            array_agg(f.event_type order by f.place) as event_types,
            array_agg(f.payload order by f.place) as payloads
        from (
            select g.org_id, g.run_id, g.place, 'run.started' as event_type, jsonb_build_object('attempt', g.attempt) as payload
            from unnest(p_org_ids, p_run_ids, v_attempts, v_kinds)
                with ordinality as g (org_id, run_id, attempt, kind, place)
            where g.kind = 'first'
            union all
            select
                g.org_id, g.run_id, g.place, 'run.resumed',
                jsonb_build_object('attempt', g.attempt, 'waitId', g.wait_id)
                || counterfoil.wait_answer(g.org_id, g.run_id, g.wait_id) - 'payload'
            from unnest(p_org_ids, p_run_ids, v_attempts, v_waits)
                with ordinality as g (org_id, run_id, attempt, wait_id, place)
            where g.wait_id is not null
        ) as f
        group by f.org_id
        order by f.org_id
    loop
        perform counterfoil.write_facts(
            v_org.org_id, v_org.run_ids, v_org.event_ids, v_org.event_types, v_org.payloads, v_now
        );
    end loop;

    return query
    select
        g.org_id, g.run_id, g.attempt, g.lease_id, (a.row_of).lease_expires_at, r.play_name, l.launch,
        counterfoil.attempt_context(l.launch, r.root_run_id, r.parent_run_id, r.max_attempts, r.deadline_at, a.row_of),
        case when g.wait_id is not null then counterfoil.wait_answer(g.org_id, g.run_id, g.wait_id) end
    from unnest(p_org_ids, p_run_ids, v_attempts, v_lease_ids, v_waits)
        with ordinality as g (org_id, run_id, attempt, lease_id, wait_id, place)
    cross join lateral (
        select h.play_name, h.root_run_id, h.parent_run_id, h.max_attempts, h.deadline_at
        from counterfoil.runs as h
        where h.org_id = g.org_id and h.run_id = g.run_id
        limit 1
    ) as r
    cross join lateral (
        select h.launch
        from counterfoil.launches as h
        where h.org_id = g.org_id and h.run_id = g.run_id
        limit 1
    ) as l
    cross join lateral (
        select h as row_of
        from counterfoil.attempts as h
        where h.org_id = g.org_id and h.run_id = g.run_id and h.attempt = g.attempt
        limit 1
    ) as a
    order by g.place;
end
$function$;

comment on function counterfoil.start_attempts(text, text[], text[], interval) is
'Starts or continues the attempts of runs whose locks the caller holds: rows, facts, and what the worker needs. Private.';

revoke all on function counterfoil.start_attempts(text, text[], text[], interval) from public;
