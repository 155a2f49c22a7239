-- prove_dispatch_lease: proves that a dispatcher holds a fact.
--
-- Promises: returns only while p_lease_owner has a live lease that covers the pending fact.
-- Locks:    nothing.
-- Raises:   RL001 malformed ids; RL002 fact_not_found; RL004 head_lease_owner_mismatch when another holds it,
--           delivery_lease_not_current when nobody does.
-- Since:    1

create or replace function counterfoil.prove_dispatch_lease(
    p_org_id text,
    p_run_id text,
    p_event_id text,
    p_lease_owner text
)
returns void
language plpgsql
volatile
parallel unsafe
called on null input
security invoker
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_now timestamptz := clock_timestamp();
    v_fact record;
begin
    perform counterfoil.check_id(p_org_id, 'p_org_id');
    perform counterfoil.check_id(p_run_id, 'p_run_id');
    perform counterfoil.check_id(p_event_id, 'p_event_id');
    perform counterfoil.check_id(p_lease_owner, 'p_lease_owner');

    select
        o.seq,
        l.lease_owner,
        l.lease_owner = p_lease_owner and l.lease_expires_at > v_now
        and o.seq between l.head_seq and l.lease_through_seq as is_held,
        l.lease_owner <> p_lease_owner and l.lease_expires_at > v_now as is_taken
    into v_fact
    from counterfoil.outbox as o
    left join counterfoil.lanes as l on l.org_id = p_org_id and l.run_id = p_run_id and l.lane = o.lane
    where o.org_id = p_org_id and o.event_id = p_event_id and o.run_id = p_run_id;

    if v_fact.seq is null then
        perform counterfoil.raise_not_found(
            'The run has no such fact.', 'fact_not_found', 'Check p_run_id and p_event_id.'
        );
    elsif v_fact.is_taken then
        perform counterfoil.raise_lease_lost(
            'Another owner holds the lease on this fact.', 'head_lease_owner_mismatch', 'Drop the delivery; claim again.'
        );
    elsif not coalesce(v_fact.is_held, false) then
        perform counterfoil.raise_lease_lost(
            'This owner holds no live lease on this fact.', 'delivery_lease_not_current', 'Drop the delivery; claim again.'
        );
    end if;
end
$function$;

comment on function counterfoil.prove_dispatch_lease(text, text, text, text) is
'Returns only while p_lease_owner holds the pending fact under a live lease (else RL004, or RL002 for no such fact). Private.';

revoke all on function counterfoil.prove_dispatch_lease(text, text, text, text) from public;
