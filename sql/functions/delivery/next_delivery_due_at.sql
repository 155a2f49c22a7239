-- next_delivery_due_at: when a dispatcher should look again.
--
-- Promises: the earliest time at which a lane can be claimed, counting live leases as lasting; in the past or now when one
--           can be claimed already; null when nothing is pending or all of it is blocked. The cost grows with the leases
--           that are live, not with what waits.
-- Locks:    nothing.
-- Raises:   RL001 malformed arguments, or a run id that several orgs have.
-- Since:    1

create or replace function counterfoil.next_delivery_due_at(
    p_lane text,
    p_run_id text default null,
    p_org_id text default null
)
returns timestamptz
language plpgsql
volatile
parallel unsafe
called on null input
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
as $function$
declare
    v_now timestamptz := clock_timestamp();
    v_org_id text := p_org_id;
    v_free_at timestamptz;
    v_lapses_at timestamptz;
begin
    perform counterfoil.check_lane(p_lane);
    if p_org_id is not null then
        perform counterfoil.check_id(p_org_id, 'p_org_id');
    end if;

    if p_run_id is not null then
        perform counterfoil.check_id(p_run_id, 'p_run_id');
        if v_org_id is null then
            v_org_id := counterfoil.find_org_of_lane(p_run_id, p_lane);
        end if;
        return (
            select greatest(l.due_at, l.lease_expires_at)
            from counterfoil.lanes as l
            where l.org_id = v_org_id and l.run_id = p_run_id and l.lane = p_lane and l.blocked_at is null
        );
    end if;

    -- First what nobody holds; only when none of that is ready do leases matter.
    if p_org_id is not null then
        select min(k.due_at)
        into v_free_at
        from (values (0), (1), (2), (3)) as g (priority)
        cross join lateral (
            select l.due_at
            from counterfoil.lanes as l
            where
                l.org_id = p_org_id and l.lane = p_lane and l.blocked_at is null and l.priority = g.priority
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
                l.org_id = p_org_id and l.lane = p_lane and l.blocked_at is null and l.due_at <= v_now
                and l.lease_expires_at > v_now;
        end if;
    else
        return counterfoil.lane_due_at(p_lane);
    end if;

    return least(v_free_at, v_lapses_at);
end
$function$;

comment on function counterfoil.next_delivery_due_at(text, text, text) is
'Earliest time at which a delivery can be claimed in the lane, of all runs, one run, or one org; live leases count as lasting. Null when nothing can become due by itself.';

revoke all on function counterfoil.next_delivery_due_at(text, text, text) from public;
