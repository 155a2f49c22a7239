-- pick_lanes_of_org: finds and locks ready lanes of one org.
--
-- Promises: up to p_limit lanes of the org that are due, not blocked and under no live lease, each locked by this
--           transaction. admission_first: by priority, then due time; oldest_ready: by due time alone. Rows that others
--           hold are passed over. It reads ranges of one index from the front and stops when it has enough.
--           Of each priority only lanes due from its mark on, and up to its second mark, if there is one; answers the
--           marks that it came to, null where none was taken.
-- Locks:    the lanes it answers, for no key update, without ever waiting.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.pick_lanes_of_org(
    p_org_id text,
    p_lane text,
    p_head_priority text,
    p_limit integer,
    p_marks timestamptz[],
    out org_ids text[],
    out run_ids text[],
    out marks timestamptz[],
    out picked_at timestamptz
)
returns record
language plpgsql
volatile
parallel unsafe
called on null input
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_material = off
set jit = off
as $function$
begin
    picked_at := clock_timestamp();
    if p_head_priority = 'admission_first' then
        select
            array_agg(c.org_id), array_agg(c.run_id),
            array[
                max(c.due_at) filter (where c.priority = 0), max(c.due_at) filter (where c.priority = 1),
                max(c.due_at) filter (where c.priority = 2), max(c.due_at) filter (where c.priority = 3)
            ]
        into org_ids, run_ids, marks
        from (
            select k.org_id, k.run_id, k.priority, k.due_at
            from (values (0), (1), (2), (3)) as g (priority)
            cross join lateral (
                select l.org_id, l.run_id, l.priority, l.due_at
                from counterfoil.lanes as l
                where
                    l.org_id = p_org_id and l.lane = p_lane and l.blocked_at is null and l.priority = g.priority
                    and l.due_at between coalesce(p_marks[g.priority + 1], '-infinity') and least(p_marks[g.priority + 5], picked_at)
                    and (l.lease_expires_at is null or l.lease_expires_at <= picked_at)
                order by l.due_at
                limit p_limit
                for no key update skip locked
            ) as k
            limit p_limit
        ) as c;
    else
        -- Locks would cost the branches their order, so a row is locked only once the merge has come to it.
        select
            array_agg(c.org_id), array_agg(c.run_id),
            array[
                max(c.due_at) filter (where c.priority = 0), max(c.due_at) filter (where c.priority = 1),
                max(c.due_at) filter (where c.priority = 2), max(c.due_at) filter (where c.priority = 3)
            ]
        into org_ids, run_ids, marks
        from (
            select k.org_id, k.run_id, k.priority, k.due_at
            from (
                select b.row_id
                from (
                    (
                        select l.ctid as row_id, l.due_at
                        from counterfoil.lanes as l
                        where
                            l.org_id = p_org_id and l.lane = p_lane and l.blocked_at is null and l.priority = 0
                            and l.due_at between coalesce(p_marks[1], '-infinity') and least(p_marks[5], picked_at)
                            and (l.lease_expires_at is null or l.lease_expires_at <= picked_at)
                        order by l.due_at
                    )
                    union all
                    (
                        select l.ctid as row_id, l.due_at
                        from counterfoil.lanes as l
                        where
                            l.org_id = p_org_id and l.lane = p_lane and l.blocked_at is null and l.priority = 1
                            and l.due_at between coalesce(p_marks[2], '-infinity') and least(p_marks[6], picked_at)
                            and (l.lease_expires_at is null or l.lease_expires_at <= picked_at)
                        order by l.due_at
                    )
                    union all
                    (
                        select l.ctid as row_id, l.due_at
                        from counterfoil.lanes as l
                        where
                            l.org_id = p_org_id and l.lane = p_lane and l.blocked_at is null and l.priority = 2
                            and l.due_at between coalesce(p_marks[3], '-infinity') and least(p_marks[7], picked_at)
                            and (l.lease_expires_at is null or l.lease_expires_at <= picked_at)
                        order by l.due_at
                    )
                    union all
                    (
                        select l.ctid as row_id, l.due_at
                        from counterfoil.lanes as l
                        where
                            l.org_id = p_org_id and l.lane = p_lane and l.blocked_at is null and l.priority = 3
                            and l.due_at between coalesce(p_marks[4], '-infinity') and least(p_marks[8], picked_at)
                            and (l.lease_expires_at is null or l.lease_expires_at <= picked_at)
                        order by l.due_at
                    )
                ) as b
                order by b.due_at
            ) as q
            cross join lateral (
                select l.org_id, l.run_id, l.priority, l.due_at
                from counterfoil.lanes as l
                where
                    l.ctid = q.row_id and l.org_id = p_org_id and l.lane = p_lane and l.blocked_at is null and l.due_at <= picked_at
                    and (l.lease_expires_at is null or l.lease_expires_at <= picked_at)
                for no key update skip locked
            ) as k
            limit p_limit
        ) as c;
    end if;
end
$function$;

comment on function counterfoil.pick_lanes_of_org(text, text, text, integer, timestamptz[]) is
'Finds and locks up to p_limit ready lanes of one org, skipping what others hold, in the order of p_head_priority (admission_first or oldest_ready). Private.';

revoke all on function counterfoil.pick_lanes_of_org(text, text, text, integer, timestamptz[]) from public;
