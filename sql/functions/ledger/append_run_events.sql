-- append_run_events: appends a delivery, or one piece of it, to a run's ledger.
--
-- Promises: proves the delivery in the same transaction, then appends the events at the next positions, gapless and
--           in order. A long delivery comes in p_chunk_count pieces, numbered from 1, in order, each proven and
--           deduplicated for itself; complete says whether all have come. The same key and piece again answers
--           'replayed' with the same positions and writes nothing, even after the acknowledgement gave the lease up.
-- Locks:    the run's ledgers row, which orders its appends; then what assert_delivery locks.
-- Raises:   RL001 malformed arguments, or a start event; RL003 other content under the same key and piece;
--           RL004 the reasons of assert_delivery; RL005 chunk_out_of_order, ledger_ended, terminal_not_last.
-- Since:    1

create or replace function counterfoil.append_run_events(
    p_org_id text,
    p_run_id text,
    p_idempotency_key text,
    p_lease_owner text,
    p_events jsonb,
    p_chunk integer default 1,
    p_chunk_count integer default 1
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
        p_org_id, p_run_id, p_idempotency_key, p_lease_owner, p_events,
        coalesce(p_chunk, 1), coalesce(p_chunk_count, 1), 'events', null
    ) as a;
end
$function$;

comment on function counterfoil.append_run_events(text, text, text, text, jsonb, integer, integer) is
'Proves a delivery, or piece p_chunk of its p_chunk_count pieces, and appends its events to the run''s ledger. Answers appended or replayed, the positions, and whether all pieces have come.';

revoke all on function counterfoil.append_run_events(text, text, text, text, jsonb, integer, integer) from public;
