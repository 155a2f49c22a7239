-- find_delivery: org and run of facts, for callers that know only their event ids.
--
-- Promises: where p_lease_owner holds a lease over a lane with the first of the facts; else any org and run that has it
--           pending; nulls for none. One index probe for each org with pending facts.
-- Locks:    nothing.
-- Raises:   RL001 malformed ids, or when the owner holds facts of that id in several orgs.
-- Since:    1

create or replace function counterfoil.find_delivery(
    p_event_ids text[],
    p_lease_owner text,
    out org_id text,
    out run_id text
)
returns record
language plpgsql
stable
parallel safe
called on null input
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $function$
declare
    v_found record;
begin
    perform counterfoil.check_id(p_lease_owner, 'p_lease_owner');
    perform counterfoil.check_event_ids(p_event_ids);

    select
        array_agg(o.org_id order by l.lease_owner is distinct from p_lease_owner, o.org_id) as org_ids,
        array_agg(o.run_id order by l.lease_owner is distinct from p_lease_owner, o.org_id) as run_ids,
        count(*) filter (where l.lease_owner = p_lease_owner) as owned
    into v_found
    from counterfoil.pending_orgs() as g (org_id)
    inner join counterfoil.outbox as o on o.org_id = g.org_id and o.event_id = p_event_ids[1]
    inner join counterfoil.lanes as l
        on l.org_id = o.org_id and l.run_id = o.run_id and l.lane = o.lane and l.head_seq <= o.seq;

    if v_found.owned > 1 then
        perform counterfoil.raise_invalid_argument(
            'This owner holds facts of that id in several orgs.', 'p_event_ids', 'Call the form with p_org_id and p_run_id.'
        );
    end if;
    org_id := v_found.org_ids[1];
    run_id := v_found.run_ids[1];
end
$function$;

comment on function counterfoil.find_delivery(text[], text) is
'Org and run of pending facts known by their event ids, those that p_lease_owner holds first; nulls for none. Private.';

revoke all on function counterfoil.find_delivery(text[], text) from public;
