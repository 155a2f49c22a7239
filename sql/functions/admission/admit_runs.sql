-- admit_runs: writes what belongs to runs that were just inserted.
--
-- Promises: for the launches of the given ordinals: the launch and its dispatch authority, a place in the queue,
--           run.created, a slot of the concurrency key where one is free, and a wake-up for workers.
-- Locks:    the runs are new, so the caller's own; their keys' rows are held by the caller. Then lanes.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.admit_runs(p_launches jsonb, p_ordinals bigint[], p_now timestamptz)
returns void
language plpgsql
volatile
parallel unsafe
strict
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_material = off
set jit = off
as $function$
declare
    v_orgs text[];
    v_keys text[];
    v_ready bigint;
begin
    insert into counterfoil.launches (org_id, run_id, launch, dispatch_authority)
    select l.launch ->> 'orgId', l.launch ->> 'runId', l.launch, counterfoil.launch_authority(l.launch)
    from unnest(p_ordinals) with ordinality as n (ordinal, place)
    cross join lateral (select p_launches -> (n.ordinal - 1)::integer as launch) as l
    order by n.place;

    with made as materialized (
        select
            n.place, r.org_id, r.run_id, r.available_at, r.concurrency_key, r.release_lane, r.play_id, r.play_name, r.priority,
            r.root_run_id, r.parent_run_id,
            -- Launched in one call, the earlier in the array is the older, by a microsecond.
            case
                when r.available_at > p_now then r.available_at
                else r.available_at - (jsonb_array_length(p_launches) - n.ordinal) * interval '1 microsecond'
            end as since
        from unnest(p_ordinals) with ordinality as n (ordinal, place)
        cross join lateral (select p_launches -> (n.ordinal - 1)::integer as launch) as l
        cross join lateral (
            select
                h.org_id, h.run_id, h.available_at, h.concurrency_key, h.release_lane, h.play_id, h.play_name, h.priority,
                h.root_run_id, h.parent_run_id
            from counterfoil.runs as h
            where h.org_id = l.launch ->> 'orgId' and h.run_id = l.launch ->> 'runId'
            limit 1
        ) as r
        order by n.place
    ),

    placed as (
        insert into counterfoil.run_queue as q (
            org_id, run_id, state, slotless, release_lane, play_name, priority, ready_at, queued_at, concurrency_key
        )
        select
            m.org_id, m.run_id,
            case when m.available_at > p_now then 'sleeping' when m.concurrency_key is null then 'ready' else 'held' end,
            m.concurrency_key is not null, m.release_lane, m.play_name, m.priority, m.since, m.since, m.concurrency_key
        from made as m
        returning q.org_id, q.state, q.concurrency_key
    ),

    -- A new run has neither facts nor a lane: what write_facts would look for is not there.
    written as (
        insert into counterfoil.outbox as o (
            org_id, run_id, seq, event_id, event_type, lane, deferred, payload, delivery_key, created_at
        )
        select
            m.org_id, m.run_id, 1, 'run.created:' || gen_random_uuid()::text, 'run.created', 'lifecycle', false,
            jsonb_strip_nulls(jsonb_build_object(
                'playId', m.play_id, 'playName', m.play_name, 'rootRunId', m.root_run_id, 'parentRunId', m.parent_run_id
            )),
            gen_random_uuid(), p_now
        from made as m
        returning o.org_id, o.run_id, o.lane, o.seq, o.created_at
    ),

    queued as (
        insert into counterfoil.lanes (org_id, run_id, lane, priority, due_at, head_seq, tail_seq)
        select w.org_id, w.run_id, w.lane, counterfoil.lane_priority(w.seq, null, null), w.created_at, w.seq, w.seq
        from written as w
    ),

    held as (
        select distinct p.org_id, p.concurrency_key
        from placed as p
        where p.state = 'held'
    )

    select
        (select count(*) from placed as p where p.state = 'ready'),
        (select array_agg(h.org_id order by h.org_id, h.concurrency_key) from held as h),
        (select array_agg(h.concurrency_key order by h.org_id, h.concurrency_key) from held as h)
    into v_ready, v_orgs, v_keys;
    perform counterfoil.wake('lifecycle');

    if coalesce(counterfoil.promote_held(v_orgs, v_keys), false) or v_ready > 0 then
        perform counterfoil.wake('attempts');
    end if;
end
$function$;

comment on function counterfoil.admit_runs(jsonb, bigint[], timestamptz) is
'Writes launch, queue place and run.created of runs that were just inserted. Private.';

revoke all on function counterfoil.admit_runs(jsonb, bigint[], timestamptz) from public;
