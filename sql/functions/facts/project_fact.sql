-- project_fact: the ledger events of one fact.
--
-- Promises: the events in order, numbered from 0; no row for a fact that projects nothing.
-- Locks:    nothing.
-- Raises:   RL001 malformed ids; RL002 fact_not_found; RL005 projection_deferred while the fact must be materialised.
-- Since:    1

create or replace function counterfoil.project_fact(p_org_id text, p_run_id text, p_event_id text)
returns table (item integer, event jsonb)
language plpgsql
stable
parallel safe
called on null input
security definer
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_fact record;
begin
    perform counterfoil.check_id(p_org_id, 'p_org_id');
    perform counterfoil.check_id(p_run_id, 'p_run_id');
    perform counterfoil.check_id(p_event_id, 'p_event_id');

    select o.event_type, o.event_id, o.run_id, o.seq, o.created_at, o.payload, o.deferred
    into v_fact
    from counterfoil.outbox as o
    where o.org_id = p_org_id and o.event_id = p_event_id and o.run_id = p_run_id;
    if not found then
        perform counterfoil.raise_not_found(
            'The run has no such fact.', 'fact_not_found', 'Check p_run_id and p_event_id; facts past retention are gone.'
        );
    elsif v_fact.deferred then
        perform counterfoil.raise_invalid_state(
            'The fact has not been materialised yet.', 'projection_deferred',
            'Materialise it with materialize_runtime_outbox_event() first.'
        );
    end if;

    return query
    select (e.ordinality - 1)::integer, e.event
    from jsonb_array_elements(counterfoil.project_events(
        v_fact.event_type, v_fact.event_id, v_fact.run_id, v_fact.seq, v_fact.created_at, v_fact.payload
    )) with ordinality as e (event, ordinality)
    order by e.ordinality;
end
$function$;

comment on function counterfoil.project_fact(text, text, text) is
'Ledger events of one fact, in order; item counts them from 0. A deferred fact must be materialised first (RL005).';

revoke all on function counterfoil.project_fact(text, text, text) from public;
