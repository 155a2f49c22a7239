-- look_for_deliveries: what a dispatcher without work asks, once per poll.
--
-- Promises: one row a lane asked for, in that order: when it can next be claimed, as next_delivery_due_at() says. It keeps
--           the registrations of p_listeners (a name a lane, null for none) from running out, or has them again, after a process
--           was stopped for a while.
-- Locks:    its own rows of listeners.
-- Raises:   RL001.
-- Since:    1

create or replace function counterfoil.look_for_deliveries(p_lanes text[], p_listeners text[])
returns table (lane text, due_at timestamptz)
language plpgsql
volatile
parallel unsafe
called on null input
security definer
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_now timestamptz := clock_timestamp();
begin
    perform counterfoil.check_limit(cardinality(p_lanes), 1, 2, 'p_lanes');
    perform counterfoil.check_lane(l.lane) from unnest(p_lanes) as l (lane);
    if
        exists (
            select
            from counterfoil.listeners as l
            where l.listener = any (p_listeners) and l.queue = any (p_lanes)
                and l.asleep_until < v_now + interval '40 seconds'
        )
    then
        update counterfoil.listeners as l
        set asleep_until = v_now + interval '60 seconds'
        where l.listener = any (p_listeners) and l.queue = any (p_lanes);
    end if;
    return query
    select l.lane, counterfoil.lane_due_at(l.lane)
    from unnest(p_lanes) with ordinality as l (lane, place)
    order by l.place;
end
$function$;

comment on function counterfoil.look_for_deliveries(text[], text[]) is
'What a dispatcher without work asks once per poll: of each lane (lifecycle, search) when it can next be claimed, in the past when it can now, null when that is not known. Keeps the listeners registered.';

revoke all on function counterfoil.look_for_deliveries(text[], text[]) from public;
