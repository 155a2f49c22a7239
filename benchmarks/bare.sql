-- The shape of the hot path and nothing else: a counter that orders a run's facts, the facts, a lane with lease and head,
-- a log of deliveries. No check, no launch or run behind it, no repeats, no refusals, no frozen receipt, no wake-up.
-- What it reaches is what this machine gives to the shape; the difference to counterfoil is what its promises cost.

drop schema if exists bench_bare cascade;
create schema bench_bare;

create table bench_bare.counters (
    org_id text collate "C" not null,
    run_id text collate "C" not null,
    last_seq bigint not null,
    primary key (org_id, run_id)
) with (fillfactor = 50);

create table bench_bare.facts (
    org_id text collate "C" not null,
    run_id text collate "C" not null,
    seq bigint not null,
    event_id text collate "C" not null,
    event_type text collate "C" not null,
    payload jsonb not null,
    created_at timestamptz not null,
    primary key (org_id, run_id, seq),
    unique (org_id, event_id)
);

create table bench_bare.lanes (
    org_id text collate "C" not null,
    run_id text collate "C" not null,
    lane text collate "C" not null,
    priority smallint not null,
    due_at timestamptz not null,
    head_seq bigint not null,
    tail_seq bigint not null,
    lease_owner text collate "C",
    lease_generation bigint not null default 0,
    lease_expires_at timestamptz,
    primary key (org_id, run_id, lane)
) with (
    fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
    autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off
);
create index on bench_bare.lanes (priority, due_at);

create table bench_bare.deliveries (
    org_id text collate "C" not null,
    run_id text collate "C" not null,
    first_seq bigint not null,
    last_seq bigint not null,
    delivered_at timestamptz not null
);

create function bench_bare.append(p_org_id text, p_run_id text, p_event_ids text[], p_event_type text, p_payloads jsonb[])
returns bigint
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $function$
declare
    v_base bigint;
    v_now timestamptz;
begin
    update bench_bare.counters as c
    set last_seq = c.last_seq + cardinality(p_event_ids)
    where c.org_id = p_org_id and c.run_id = p_run_id
    returning c.last_seq - cardinality(p_event_ids) into strict v_base;
    v_now := clock_timestamp();

    insert into bench_bare.facts
    select p_org_id, p_run_id, v_base + u.ordinal, u.event_id, p_event_type, u.payload, v_now
    from unnest(p_event_ids, p_payloads) with ordinality as u (event_id, payload, ordinal);

    insert into bench_bare.lanes as l (org_id, run_id, lane, priority, due_at, head_seq, tail_seq)
    values (p_org_id, p_run_id, 'lifecycle', 3, v_now, v_base + 1, v_base + cardinality(p_event_ids))
    on conflict (org_id, run_id, lane) do update
    set tail_seq = excluded.tail_seq, priority = least(l.priority, excluded.priority);
    return v_base;
end
$function$;

create function bench_bare.claim(p_owner text, p_lanes integer)
returns table (org_id text, run_id text, seq bigint, event_id text, payload jsonb)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set enable_hashjoin = off
set enable_mergejoin = off
as $function$
declare
    v_now timestamptz := clock_timestamp();
begin
    return query
    with picked as materialized (
        select l.ctid as row_at, l.org_id, l.run_id, l.head_seq, l.tail_seq
        from bench_bare.lanes as l
        where l.priority = 3 and l.due_at <= v_now and (l.lease_expires_at is null or l.lease_expires_at <= v_now)
        order by l.due_at
        limit p_lanes
        for no key update skip locked
    ),

    leased as (
        update bench_bare.lanes as l
        set lease_owner = p_owner, lease_expires_at = v_now + interval '30 s', lease_generation = l.lease_generation + 1
        from picked as p
        where l.ctid = p.row_at
    )

    select p.org_id, p.run_id, f.seq, f.event_id, f.payload
    from picked as p
    cross join lateral (
        select o.seq, o.event_id, o.payload
        from bench_bare.facts as o
        where o.org_id = p.org_id and o.run_id = p.run_id and o.seq between p.head_seq and p.tail_seq
        order by o.seq
        limit 64
    ) as f;
end
$function$;

create function bench_bare.acknowledge(p_org_ids text[], p_run_ids text[], p_seqs bigint[], p_owner text)
returns bigint
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $function$
declare
    v_now timestamptz := clock_timestamp();
    v_done bigint;
begin
    with held as materialized (
        select l.row_at, l.org_id, l.run_id, l.head_seq, l.tail_seq, g.seq
        from unnest(p_org_ids, p_run_ids, p_seqs) as g (org_id, run_id, seq)
        cross join lateral (
            select k.ctid as row_at, k.org_id, k.run_id, k.head_seq, k.tail_seq
            from bench_bare.lanes as k
            where
                k.org_id = g.org_id and k.run_id = g.run_id and k.lane = 'lifecycle'
                and k.lease_owner = p_owner and k.lease_expires_at > v_now
            limit 1
            for no key update skip locked
        ) as l
    ),

    done as (
        delete from bench_bare.lanes as l
        using held as h
        where l.ctid = h.row_at and h.tail_seq = h.seq
    ),

    advanced as (
        update bench_bare.lanes as l
        set head_seq = h.seq + 1, due_at = v_now, lease_owner = null, lease_expires_at = null
        from held as h
        where l.ctid = h.row_at and h.tail_seq <> h.seq
    ),

    logged as (
        insert into bench_bare.deliveries
        select h.org_id, h.run_id, h.head_seq, h.seq, v_now
        from held as h
    )

    select count(*) into v_done from held as h;
    return cardinality(p_org_ids) - v_done;
end
$function$;
