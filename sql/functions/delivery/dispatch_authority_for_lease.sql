-- dispatch_authority_for_lease: the narrow authority to deliver a run's facts.
--
-- Promises: the ten routing and authority fields of the launch, never the input or anything large, and only to the holder
--           of a live lease on the pending fact. Without p_org_id the org is found: one key read for each org with pending
--           facts; where several have such a fact, the lease tells.
-- Locks:    nothing.
-- Raises:   RL001 malformed ids; RL002 fact_not_found; RL004 head_lease_owner_mismatch, delivery_lease_not_current.
-- Since:    1

create or replace function counterfoil.dispatch_authority_for_lease(
    p_org_id text,
    p_run_id text,
    p_event_id text,
    p_lease_owner text
)
returns jsonb
language plpgsql
volatile
parallel unsafe
called on null input
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $function$
declare
    v_org_id text := p_org_id;
begin
    if v_org_id is null then
        select f.org_id
        into v_org_id
        from counterfoil.pending_orgs() as g (org_id)
        cross join lateral (
            select o.org_id, o.run_id, o.lane
            from counterfoil.outbox as o
            where o.org_id = g.org_id and o.event_id = p_event_id and o.run_id = p_run_id
            limit 1
        ) as f
        left join counterfoil.lanes as l
            on l.org_id = f.org_id and l.run_id = f.run_id and l.lane = f.lane
            and l.lease_owner = p_lease_owner and l.lease_expires_at > clock_timestamp()
        order by (l.lease_owner is null), f.org_id
        limit 1;
        if v_org_id is null then
            perform counterfoil.check_id(p_run_id, 'p_run_id');
            perform counterfoil.check_id(p_event_id, 'p_event_id');
            perform counterfoil.raise_not_found(
                'No org has such a pending fact.', 'fact_not_found', 'Check p_run_id and p_event_id, or give p_org_id.'
            );
        end if;
    end if;

    perform counterfoil.prove_dispatch_lease(v_org_id, p_run_id, p_event_id, p_lease_owner);
    return (
        select a.dispatch_authority
        from counterfoil.launches as a
        where a.org_id = v_org_id and a.run_id = p_run_id
    );
end
$function$;

comment on function counterfoil.dispatch_authority_for_lease(text, text, text, text) is
'Routing and authority fields of the run''s launch, for the holder of a live lease on the pending fact; RL004 for anyone else.';

revoke all on function counterfoil.dispatch_authority_for_lease(text, text, text, text) from public;
