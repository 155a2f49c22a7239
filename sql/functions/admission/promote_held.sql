-- promote_held: lets held runs into the queue while their concurrency key has slots free.
--
-- Promises: as many held runs of each key as it has free slots, by priority, then age, become ready and count as in use.
--           Says whether any did.
-- Locks:    the caller holds the keys' rows; that alone guards held rows of the queue, which it updates.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.promote_held(p_org_ids text[], p_keys text[])
returns boolean
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
    v_promoted bigint;
begin
    with chosen as materialized (
        select q.row_at, k.key_at
        from unnest(p_org_ids, p_keys) as g (org_id, concurrency_key)
        cross join lateral (
            select c.ctid as key_at, c.org_id, c.concurrency_key, c.in_use
            from counterfoil.concurrency_keys as c
            where c.org_id = g.org_id and c.concurrency_key = g.concurrency_key
            limit 1
        ) as k
        cross join lateral counterfoil.admission_rules(k.org_id) as r
        cross join lateral (
            select h.ctid as row_at
            from counterfoil.run_queue as h
            where h.org_id = k.org_id and h.concurrency_key = k.concurrency_key and h.state = 'held'
            order by h.priority, h.queued_at, h.run_id
            limit greatest(r.max_per_concurrency_key - k.in_use, 0)
        ) as q
    ),

    promoted as (
        update counterfoil.run_queue as q
        set state = 'ready', slotless = false
        from chosen as c
        where q.ctid = c.row_at
    ),

    counted as (
        update counterfoil.concurrency_keys as k
        set in_use = k.in_use + n.slots
        from (select c.key_at, count(*) as slots from chosen as c group by c.key_at) as n
        where k.ctid = n.key_at
    )

    select count(*) into v_promoted from chosen as c;
    return v_promoted > 0;
end
$function$;

comment on function counterfoil.promote_held(text[], text[]) is
'Makes held runs of the given keys ready while slots are free; the caller holds the keys'' rows. Private.';

revoke all on function counterfoil.promote_held(text[], text[]) from public;
