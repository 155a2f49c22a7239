-- append_run_created: opens a run's ledger with its run.created event.
--
-- Promises: proves the delivery, then appends the one event at position 1. The same key again answers 'replayed' with
--           the same positions and writes nothing.
-- Locks:    the run's ledgers row; then what assert_delivery locks.
-- Raises:   RL001, RL003, RL004 (the reasons of assert_delivery), RL005 as append_run_events does.
-- Since:    1

create or replace function counterfoil.append_run_created(
    p_org_id text,
    p_run_id text,
    p_idempotency_key text,
    p_lease_owner text,
    p_events jsonb
)
returns table (outcome text, first_position bigint, last_position bigint, complete boolean)
language plpgsql
volatile
parallel unsafe
called on null input
security definer
set search_path = pg_catalog, pg_temp
as $function$
begin
    -- PL/pgSQL keeps the plan; an SQL function would be planned anew in every call.
    return query
    select a.outcome, a.first_position, a.last_position, a.complete
    from counterfoil.append_ledger_piece(
        p_org_id, p_run_id, p_idempotency_key, p_lease_owner, p_events, 1, 1, 'created', null
    ) as a;
end
$function$;

comment on function counterfoil.append_run_created(text, text, text, text, jsonb) is
'Proves the delivery of a run''s run.created fact and opens the run''s ledger with its event. Answers appended or replayed, the positions, and that the delivery is complete.';

revoke all on function counterfoil.append_run_created(text, text, text, text, jsonb) from public;
