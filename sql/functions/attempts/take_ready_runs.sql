-- take_ready_runs: takes the next ready runs of some orgs out of the queue.
--
-- Promises: of each org at most its cap, by priority, then age; in the order of the orgs. Their queue rows are gone and
--           their run rows locked. What somebody else holds is passed over. A run whose deadline is over leaves the queue and is
--           not among those answered: it counts towards the cap and is told by its org alone; recovery ends it.
-- Locks:    queue rows, then run rows, both skipping what is locked: it waits for nobody.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.take_ready_runs(
    p_release_lane text, p_plays text[], p_org_ids text[], p_caps bigint[],
    out org_ids text[], out run_ids text[], out late_org_ids text[]
)
returns record
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
set enable_sort = off
set jit = off
as $function$
declare
    v_now timestamptz := clock_timestamp();
    v_rows tid[];
begin
    -- Look first, lock then: how many of each play an org's next runs are is decided on what lies there, and exactly
    -- that many are locked, so that no other claim finds runs locked that nobody takes.
    with wanted as materialized (
        select o.turn, o.org_id, h.play_name, count(*) as runs
        from unnest(p_org_ids, p_caps) with ordinality as o (org_id, cap, turn)
        cross join lateral (
            select f.play_name
            from unnest(p_plays) as p (play_name)
            cross join lateral (
                select q.play_name, q.priority, q.queued_at
                from counterfoil.run_queue as q
                where q.release_lane = p_release_lane
                    and q.play_name = p.play_name
                    and q.org_id = o.org_id
                    and q.state = 'ready'
                order by q.priority, q.queued_at
                limit o.cap
            ) as f
            order by f.priority, f.queued_at
            limit o.cap
        ) as h
        group by o.turn, o.org_id, h.play_name
    ),

    held as materialized (
        select w.turn, l.row_at, l.org_id, l.run_id, l.priority, l.queued_at, l.is_late
        from wanted as w
        cross join lateral (
            select q.row_at, q.org_id, q.run_id, q.priority, q.queued_at, f.is_late
            from (
                select h.ctid as row_at, h.org_id, h.run_id, h.priority, h.queued_at
                from counterfoil.run_queue as h
                where h.release_lane = p_release_lane
                    and h.play_name = w.play_name
                    and h.org_id = w.org_id
                    and h.state = 'ready'
                order by h.priority, h.queued_at
                for no key update skip locked
            ) as q
            -- One by one, by key, until there are enough: a run that somebody holds must not keep back those behind it,
            -- and no plan, made on however small a table, may read more of the org.
            cross join lateral (
                select coalesce(r.deadline_at <= v_now, false) as is_late
                from counterfoil.runs as r
                where r.org_id = q.org_id and r.run_id = q.run_id and r.status in ('queued', 'waiting')
                limit 1
                for no key update skip locked
            ) as f
            limit w.runs
        ) as l
    )

    select
        coalesce(array_agg(h.row_at), '{}'),
        coalesce(array_agg(h.org_id order by h.turn, h.priority, h.queued_at, h.run_id) filter (where not h.is_late), '{}'),
        coalesce(array_agg(h.run_id order by h.turn, h.priority, h.queued_at, h.run_id) filter (where not h.is_late), '{}'),
        coalesce(array_agg(h.org_id order by h.turn) filter (where h.is_late), '{}')
    into v_rows, org_ids, run_ids, late_org_ids
    from held as h;

    -- By place alone, which the locks keep: any other condition, on a small table, is answered by reading an index.
    delete from counterfoil.run_queue as q
    where q.ctid = any (v_rows);
end
$function$;

comment on function counterfoil.take_ready_runs(text, text[], text[], bigint[]) is
'Takes the next ready runs of the orgs, at most each one''s cap, out of the queue and locks them. Private.';

revoke all on function counterfoil.take_ready_runs(text, text[], text[], bigint[]) from public;
