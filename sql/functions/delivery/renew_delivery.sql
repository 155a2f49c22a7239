-- renew_delivery: extends a lease, and freezes the receipt before it may be attempted.
--
-- Promises: the lease of p_lease_owner over exactly these facts lasts p_lease_seconds from now. With p_freeze the set, its
--           idempotency key and the places at which it is cut into pieces are recorded for good, before any HTTP; a
--           second freeze keeps the first's.
-- Locks:    the lane, for no key update.
-- Raises:   RL001 malformed arguments; RL004 delivery_lease_not_current; RL005 projection_deferred when a fact to be
--           frozen has not been materialised.
-- Since:    1

create or replace function counterfoil.renew_delivery(
    p_org_id text,
    p_run_id text,
    p_event_ids text[],
    p_lease_owner text,
    p_lease_seconds integer default 30,
    p_freeze boolean default false
)
returns table (lease_expires_at timestamptz, idempotency_key text, frozen_at timestamptz)
language plpgsql
volatile
parallel unsafe
called on null input
security definer
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_held record;
begin
    select h.*
    into strict v_held
    from counterfoil.hold_delivery(p_org_id, p_run_id, p_event_ids, p_lease_owner) as h;

    if p_freeze and v_held.has_deferred then
        perform counterfoil.raise_invalid_state(
            'A fact of this delivery has not been materialised yet.', 'projection_deferred',
            'Materialise every deferred fact before the receipt is frozen.'
        );
    end if;

    return query
    update counterfoil.lanes as l
    set
        lease_expires_at = v_held.held_at + counterfoil.clamp_lease(p_lease_seconds),
        receipt_key = case when p_freeze then v_held.receipt_key else l.receipt_key end,
        receipt_through_seq = case when p_freeze then v_held.through_seq else l.receipt_through_seq end,
        receipt_frozen_at = case when p_freeze then coalesce(l.receipt_frozen_at, v_held.held_at) else l.receipt_frozen_at end,
        receipt_piece_max_events = case
            when p_freeze then coalesce(l.receipt_piece_max_events, counterfoil.setting_integer('delivery_piece_max_events')::integer)
            else l.receipt_piece_max_events
        end,
        receipt_piece_max_bytes = case
            when p_freeze then coalesce(l.receipt_piece_max_bytes, counterfoil.setting_integer('delivery_piece_max_bytes')::integer)
            else l.receipt_piece_max_bytes
        end
    where l.org_id = p_org_id and l.run_id = p_run_id and l.lane = v_held.lane
    returning l.lease_expires_at, v_held.receipt_key, l.receipt_frozen_at;
end
$function$;

comment on function counterfoil.renew_delivery(text, text, text[], text, integer, boolean) is
'Extends the live lease of p_lease_owner over exactly these facts and answers the new expiry, the idempotency key and since when the receipt is frozen. p_freeze freezes it: call it so before every HTTP attempt.';

revoke all on function counterfoil.renew_delivery(text, text, text[], text, integer, boolean) from public;

create or replace function counterfoil.renew_delivery(
    p_event_ids text[],
    p_lease_owner text,
    p_lease_seconds integer default 30,
    p_freeze boolean default false
)
returns table (lease_expires_at timestamptz, idempotency_key text, frozen_at timestamptz)
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
    if v_found.org_id is null then
        perform counterfoil.raise_lease_lost(
            'These facts are not pending.', 'delivery_lease_not_current', 'Drop the delivery; claim again.'
        );
    end if;

    return query
    select r.lease_expires_at, r.idempotency_key, r.frozen_at
    from counterfoil.renew_delivery(
        v_found.org_id, v_found.run_id, p_event_ids, p_lease_owner, p_lease_seconds, p_freeze
    ) as r;
end
$function$;

comment on function counterfoil.renew_delivery(text[], text, integer, boolean) is
'The same for facts known by their event ids alone: finds the org among those with pending facts. The form with p_org_id first is the one for busy callers.';

revoke all on function counterfoil.renew_delivery(text[], text, integer, boolean) from public;
