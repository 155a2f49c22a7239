-- wake_sleepers: lets runs whose time has come into the queue.
--
-- Promises: of each play, up to p_limit sleeping runs that have been due the longest and as many that fell due last become
--           ready, so that many that fall due at once do not hide those that fall due after them; one that needs a slot of
--           its concurrency key gets in line for it. What others hold is left for the next time.
-- Locks:    queue rows, then rows of concurrency_keys, all of them skipping what is locked: it waits for nobody.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.wake_sleepers(p_release_lane text, p_plays text[], p_limit integer)
returns void
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
    v_awake tid[];
    v_slotless tid[];
    v_org_ids text[];
    v_keys text[];
    v_held_org_ids text[];
    v_held_keys text[];
begin
    select
        array_agg(s.row_at) filter (where not s.slotless),
        array_agg(s.row_at) filter (where s.slotless),
        array_agg(s.org_id) filter (where s.slotless),
        array_agg(s.concurrency_key) filter (where s.slotless)
    into v_awake, v_slotless, v_org_ids, v_keys
    from unnest(p_plays) as p (play_name)
    cross join lateral (
        select f.row_at, f.slotless, f.org_id, f.concurrency_key
        from (
            select q.ctid as row_at, q.slotless, q.org_id, q.concurrency_key
            from counterfoil.run_queue as q
            where q.release_lane = p_release_lane
                and q.play_name = p.play_name
                and q.state = 'sleeping'
                and q.ready_at <= v_now
            order by q.ready_at
            limit p_limit
            for no key update skip locked
        ) as f
        union
        select l.row_at, l.slotless, l.org_id, l.concurrency_key
        from (
            select q.ctid as row_at, q.slotless, q.org_id, q.concurrency_key
            from counterfoil.run_queue as q
            where q.release_lane = p_release_lane
                and q.play_name = p.play_name
                and q.state = 'sleeping'
                and q.ready_at <= v_now
            order by q.ready_at desc
            limit p_limit
            for no key update skip locked
        ) as l
    ) as s;

    if v_awake is not null then
        -- By place alone, which the locks keep: any other condition, on a small table, is answered by reading an index.
        update counterfoil.run_queue as q
        set state = 'ready'
        where q.ctid = any (v_awake);
    end if;

    if v_slotless is not null then
        select array_agg(k.org_id), array_agg(k.concurrency_key)
        into v_held_org_ids, v_held_keys
        from (
            select distinct g.org_id, g.concurrency_key
            from unnest(v_org_ids, v_keys) as g (org_id, concurrency_key)
        ) as g
        cross join lateral (
            select c.org_id, c.concurrency_key
            from counterfoil.concurrency_keys as c
            where c.org_id = g.org_id and c.concurrency_key = g.concurrency_key
            for no key update skip locked
        ) as k;

        v_slotless := array(
            select s.row_at
            from unnest(v_slotless, v_org_ids, v_keys) as s (row_at, org_id, concurrency_key)
            inner join unnest(v_held_org_ids, v_held_keys) as g (org_id, concurrency_key)
                on g.org_id = s.org_id and g.concurrency_key = s.concurrency_key
        );
        update counterfoil.run_queue as q
        set state = 'held'
        where q.ctid = any (v_slotless);
        perform counterfoil.promote_held(v_held_org_ids, v_held_keys);
    end if;
end
$function$;

comment on function counterfoil.wake_sleepers(text, text[], integer) is
'Makes due sleeping runs of the plays ready, or puts them in line for a slot of their concurrency key. Private.';

revoke all on function counterfoil.wake_sleepers(text, text[], integer) from public;
