-- write_fact: writes one new fact of a run, in a few statements by key.
--
-- Promises: the fact gets the run's next position and its lane is up for delivery; answers the position, or null, with
--           nothing written, when the org has a fact of that event id. What write_facts does for many facts, without
--           the cost of a statement for many.
-- Locks:    the caller holds the run's row (at least for no key update); then its counter, then the lane, upserted.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.write_fact(
    p_org_id text,
    p_run_id text,
    p_event_id text,
    p_event_type text,
    p_payload jsonb,
    p_now timestamptz
)
returns bigint
language plpgsql
volatile
parallel unsafe
called on null input
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
-- A plan made while a table was small must still look up by key when it is not.
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $function$
declare
    v_delivery_key uuid := gen_random_uuid();
    v_lane text := counterfoil.fact_lane(p_payload);
    v_seq bigint;
begin
    if p_event_type = 'run.created' then
        insert into counterfoil.fact_counters (org_id, run_id, last_seq, facts) values (p_org_id, p_run_id, 0, 0);
    end if;

    insert into counterfoil.outbox as o (
        org_id, run_id, seq, event_id, event_type, lane, deferred, payload, delivery_key, created_at
    )
    select
        p_org_id, p_run_id, c.last_seq + 1, p_event_id, p_event_type, v_lane,
        coalesce(p_payload -> 'deferredProjection' = 'true'::jsonb, false), p_payload, v_delivery_key, p_now
    from counterfoil.fact_counters as c
    where c.org_id = p_org_id and c.run_id = p_run_id
    -- The run's row, which orders writers, is not written: a caller with an older snapshot fails here, with 40001.
    for no key update of c
    on conflict on constraint outbox_event_id_key do nothing
    returning o.seq into v_seq;
    if v_seq is null then
        return null;
    end if;

    update counterfoil.fact_counters as c
    set last_seq = v_seq, facts = c.facts + 1
    where c.org_id = p_org_id and c.run_id = p_run_id;

    -- Returned, not performed: that spares the call a query of its own.
    return counterfoil.queue_facts(
        p_org_id, p_run_id, v_lane, v_seq, v_seq,
        case when counterfoil.event_kind(p_event_type) = 'terminal' then v_seq end,
        case when counterfoil.is_public_wait(p_event_type, p_payload) then v_seq end,
        p_now
    );
end
$function$;

comment on function counterfoil.write_fact(text, text, text, text, jsonb, timestamptz) is
'Writes one fact of a run whose row lock the caller holds: the outbox row, the counter, the lane, and a wake-up. Answers its seq, or null when the org knows the event id already. Private.';

revoke all on function counterfoil.write_fact(text, text, text, text, jsonb, timestamptz) from public;
