-- find_org_of_lane: the org of a run that has pending facts, for callers that do not know it.
--
-- Promises: the org of the run's lane; null when no org has pending facts of such a run there.
-- Locks:    nothing.
-- Raises:   RL001 when several orgs have one: the caller must say which.
-- Since:    1

create or replace function counterfoil.find_org_of_lane(p_run_id text, p_lane text)
returns text
language plpgsql
stable
parallel safe
called on null input
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $function$
declare
    v_org_ids text[];
begin
    select array_agg(l.org_id)
    into v_org_ids
    from counterfoil.pending_orgs() as g (org_id)
    cross join lateral (
        select k.org_id
        from counterfoil.lanes as k
        where k.org_id = g.org_id and k.run_id = p_run_id and k.lane = p_lane
        limit 1
    ) as l;

    if cardinality(v_org_ids) > 1 then
        perform counterfoil.raise_invalid_argument(
            'Several orgs have a run of that id.', 'p_run_id', 'Give p_org_id too.'
        );
    end if;
    return v_org_ids[1];
end
$function$;

comment on function counterfoil.find_org_of_lane(text, text) is
'Org whose run has pending facts in the lane; null for none. Several are an error (RL001). Private.';

revoke all on function counterfoil.find_org_of_lane(text, text) from public;
