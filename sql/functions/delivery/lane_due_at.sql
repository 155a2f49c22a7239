-- lane_due_at: when a delivery of any org is next due in a lane.
--
-- Promises: what next_delivery_due_at() says without a run and an org.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.lane_due_at(p_lane text)
returns timestamptz
language plpgsql
volatile
parallel unsafe
strict
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set jit = off
as $function$
declare
    v_now timestamptz := clock_timestamp();
    v_free_at timestamptz;
    v_lapses_at timestamptz;
begin
    -- First what nobody holds; only when none of that is ready do leases matter.
    if p_lane = 'lifecycle' then
        select min(k.due_at)
        into v_free_at
        from (values (0), (1), (2), (3)) as g (priority)
        cross join lateral (
            select l.due_at
            from counterfoil.lanes as l
            where
                l.lane = 'lifecycle' and l.blocked_at is null and l.priority = g.priority
                and (l.lease_expires_at is null or l.lease_expires_at <= v_now)
            order by l.due_at
            limit 1
        ) as k;
        if v_free_at is null or v_free_at > v_now then
            select min(l.lease_expires_at)
            into v_lapses_at
            from (values (0), (1), (2), (3)) as g (priority)
            inner join counterfoil.lanes as l on l.priority = g.priority
            where
                l.lane = 'lifecycle' and l.blocked_at is null and l.due_at <= v_now and l.lease_expires_at > v_now;
        end if;
    else
        select l.due_at
        into v_free_at
        from counterfoil.lanes as l
        where
            l.lane = 'search' and l.blocked_at is null and l.priority = 3
            and (l.lease_expires_at is null or l.lease_expires_at <= v_now)
        order by l.due_at
        limit 1;
        if v_free_at is null or v_free_at > v_now then
            select min(l.lease_expires_at)
            into v_lapses_at
            from counterfoil.lanes as l
            where
                l.lane = 'search' and l.blocked_at is null and l.priority = 3 and l.due_at <= v_now
                and l.lease_expires_at > v_now;
        end if;
    end if;
    return least(v_free_at, v_lapses_at);
end
$function$;

comment on function counterfoil.lane_due_at(text) is
'When a delivery of any org is next due in a lane, live leases counted as lasting. Private.';

revoke all on function counterfoil.lane_due_at(text) from public;
