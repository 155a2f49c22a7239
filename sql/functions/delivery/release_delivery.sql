-- release_delivery: gives a lease back without charging an attempt.
--
-- Promises: the lease of p_lease_owner over the lane of these facts ends, whoever comes next can claim at once, sleepers
--           are woken, and no failure is counted. A frozen receipt stays frozen. Answers those of the facts that the lease
--           covered, in the order given; none when it was not current, so that a repeat does no harm. With p_later the lane
--           is due again only after a pause: about as long as its first fact has waited, from half a second to a minute.
-- Locks:    the lane, for no key update.
-- Raises:   RL001 malformed arguments.
-- Since:    1

create or replace function counterfoil.release_delivery(
    p_org_id text,
    p_run_id text,
    p_event_ids text[],
    p_lease_owner text,
    p_later boolean default false
)
returns table (event_id text)
language plpgsql
volatile
parallel unsafe
called on null input
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $function$
declare
    v_now timestamptz;
    v_due_at timestamptz;
    v_lane record;
    v_released text[];
begin
    perform counterfoil.check_id(p_org_id, 'p_org_id');
    perform counterfoil.check_id(p_run_id, 'p_run_id');
    perform counterfoil.check_id(p_lease_owner, 'p_lease_owner');
    perform counterfoil.check_event_ids(p_event_ids);

    for v_lane in
        select l.lane, l.head_seq, l.lease_owner, l.lease_expires_at, l.lease_through_seq
        from counterfoil.lanes as l
        where l.org_id = p_org_id and l.run_id = p_run_id and l.lease_owner = p_lease_owner
        order by l.lane
        for no key update
    loop
        v_now := clock_timestamp();
        select array_agg(g.event_id order by g.ordinality)
        into v_released
        from unnest(p_event_ids) with ordinality as g (event_id, ordinality)
        inner join counterfoil.outbox as o on o.org_id = p_org_id and o.event_id = g.event_id
        where
            v_lane.lease_expires_at > v_now and o.run_id = p_run_id and o.lane = v_lane.lane
            and o.seq between v_lane.head_seq and v_lane.lease_through_seq;
        continue when v_released is null;

        v_due_at := v_now;
        if p_later then
            -- Pauses that grow with the wait come back ever more seldom, and nobody has to count them.
            select v_now + least(greatest(v_now - o.created_at, interval '1 second'), interval '1 minute') * (0.5 + random() / 2)
            into strict v_due_at
            from counterfoil.outbox as o
            -- A fact of the other lane may have the number at which the head begins.
            where
                o.org_id = p_org_id and o.run_id = p_run_id and o.lane = v_lane.lane
                and o.seq between v_lane.head_seq and v_lane.lease_through_seq
            order by o.seq
            limit 1;
        end if;
        update counterfoil.lanes as l
        set due_at = v_due_at, lease_owner = null, lease_expires_at = null, lease_through_seq = null
        where l.org_id = p_org_id and l.run_id = p_run_id and l.lane = v_lane.lane;
        if v_due_at = v_now then
            perform counterfoil.wake(v_lane.lane);
        end if;
        return query select r.event_id from unnest(v_released) as r (event_id);
    end loop;
end
$function$;

comment on function counterfoil.release_delivery(text, text, text[], text, boolean) is
'Ends the live lease of p_lease_owner over these facts without charging an attempt, and wakes sleepers. Answers the facts that were released. With p_later they are due again after a pause, which grows with how long they have waited: for a dispatcher that has no place for their receiver.';

revoke all on function counterfoil.release_delivery(text, text, text[], text, boolean) from public;

create or replace function counterfoil.release_delivery(p_event_ids text[], p_lease_owner text)
returns table (event_id text)
language plpgsql
volatile
parallel unsafe
called on null input
security definer
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_found record;
begin
    select f.* into strict v_found from counterfoil.find_delivery(p_event_ids, p_lease_owner) as f;
    if v_found.org_id is not null then
        return query
        select r.event_id
        from counterfoil.release_delivery(v_found.org_id, v_found.run_id, p_event_ids, p_lease_owner) as r;
    end if;
end
$function$;

comment on function counterfoil.release_delivery(text[], text) is
'The same for facts known by their event ids alone: finds the org among those with pending facts. The form with p_org_id first is the one for busy callers.';

revoke all on function counterfoil.release_delivery(text[], text) from public;
