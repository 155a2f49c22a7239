-- plan_delivery_pieces: what to send for a frozen delivery.
--
-- Promises: the events of exactly these facts in pieces, in order: chunk of chunk_count, and the events of each. Always the
--           same for the same receipt, whoever asks and whatever the settings are by then; sent one after the other they
--           are all there is. No row when the facts project nothing: acknowledge at once.
-- Locks:    the lane, for no key update.
-- Raises:   RL001 malformed arguments; RL004 delivery_lease_not_current; RL005 receipt_not_frozen.
-- Since:    1

create or replace function counterfoil.plan_delivery_pieces(
    p_org_id text,
    p_run_id text,
    p_event_ids text[],
    p_lease_owner text
)
returns table (chunk integer, chunk_count integer, events jsonb)
language plpgsql
volatile
parallel unsafe
called on null input
security definer
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_held record;
    v_events jsonb;
begin
    select h.*
    into strict v_held
    from counterfoil.hold_delivery(p_org_id, p_run_id, p_event_ids, p_lease_owner) as h;

    if v_held.frozen_at is null then
        perform counterfoil.raise_invalid_state(
            'The receipt of this delivery is not frozen.', 'receipt_not_frozen', 'Call renew_delivery() with p_freeze first.'
        );
    end if;

    select jsonb_agg(e.event order by o.seq, e.ordinality)
    into v_events
    from unnest(p_event_ids) as g (event_id)
    inner join counterfoil.outbox as o on o.org_id = p_org_id and o.event_id = g.event_id
    cross join lateral jsonb_array_elements(counterfoil.project_events(
        o.event_type, o.event_id, o.run_id, o.seq, o.created_at, o.payload
    )) with ordinality as e (event, ordinality);

    return query
    select p.chunk, (count(*) over ())::integer, p.events
    from counterfoil.delivery_pieces(v_events, v_held.piece_max_events, v_held.piece_max_bytes) as p
    order by p.chunk;
end
$function$;

comment on function counterfoil.plan_delivery_pieces(text, text, text[], text) is
'Pieces in which the frozen delivery of exactly these facts travels: chunk of chunk_count with its events. No row when it has no events.';

revoke all on function counterfoil.plan_delivery_pieces(text, text, text[], text) from public;
