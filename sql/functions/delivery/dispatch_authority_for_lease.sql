-- dispatch_authority_for_lease: the narrow authority to deliver a run's facts.
--
-- Promises: the ten routing and authority fields of the launch, never the input or anything large, and only to the holder
--           of a live lease on the pending fact.
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
as $function$
begin
    perform counterfoil.prove_dispatch_lease(p_org_id, p_run_id, p_event_id, p_lease_owner);
    return (
        select a.dispatch_authority
        from counterfoil.launches as a
        where a.org_id = p_org_id and a.run_id = p_run_id
    );
end
$function$;

comment on function counterfoil.dispatch_authority_for_lease(text, text, text, text) is
'Routing and authority fields of the run''s launch, for the holder of a live lease on the pending fact; RL004 for anyone else.';

revoke all on function counterfoil.dispatch_authority_for_lease(text, text, text, text) from public;
