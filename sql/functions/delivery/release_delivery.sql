-- release_delivery: gives a lease back without charging an attempt.
--
-- Promises: the lease of p_lease_owner over the lane of these facts ends, whoever comes next can claim at once, sleepers
--           are woken, and no failure is counted. A frozen receipt stays frozen. Answers those of the facts that the lease
--           covered, in the order given; none when it was not current, so that a repeat does no harm.
-- Locks:    the lane, for no key update.
-- Raises:   RL001 malformed arguments.
-- Since:    1

create or replace function counterfoil.release_delivery(
    p_org_id text,
    p_run_id text,
    p_event_ids text[],
    p_lease_owner text
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

        update counterfoil.lanes as l
        set due_at = v_now, lease_owner = null, lease_expires_at = null, lease_through_seq = null
        where l.org_id = p_org_id and l.run_id = p_run_id and l.lane = v_lane.lane;
        perform counterfoil.wake(v_lane.lane);
        return query select r.event_id from unnest(v_released) as r (event_id);
    end loop;
end
$function$;

comment on function counterfoil.release_delivery(text, text, text[], text) is
'Ends the live lease of p_lease_owner over these facts without charging an attempt, and wakes sleepers. Answers the facts that were released.';

revoke all on function counterfoil.release_delivery(text, text, text[], text) from public;

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
