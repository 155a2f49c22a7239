-- write_fact: writes one new fact of a run, in a few statements by key.
--
-- Promises: the fact gets the run's next position and its lane is up for delivery; answers the position, or null, with
--           nothing written, when the org has a fact of that event id. What write_facts does for many facts, without
--           the cost of a statement for many.
-- Locks:    the caller holds the run's row (at least for no key update); then the lane.
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
    v_lane text;
    v_terminal_seq bigint;
    v_wait_seq bigint;
    v_wakes boolean;
    v_seq bigint;
begin
    insert into counterfoil.outbox as o (
        org_id, run_id, seq, event_id, event_type, lane, deferred, payload, delivery_key, created_at
    )
    values (
        p_org_id, p_run_id,
        -- What latest_seq() answers: looked up here, since the function's call would cost more than it.
        greatest(
            (
                select f.seq
                from counterfoil.outbox as f
                where f.org_id = p_org_id and f.run_id = p_run_id
                order by f.seq desc
                limit 1
            ),
            (
                select p.through_seq
                from counterfoil.purged_facts as p
                where p.org_id = p_org_id and p.run_id = p_run_id
            ),
            0
        ) + 1,
        p_event_id, p_event_type, counterfoil.fact_lane(p_payload),
        coalesce(p_payload -> 'deferredProjection' = 'true'::jsonb, false), p_payload, v_delivery_key, p_now
    )
    -- Of any key: a caller whose snapshot is older than the run's latest fact meets its position here, with 40001.
    on conflict do nothing
    returning o.seq, o.lane into v_seq, v_lane;
    if v_seq is null then
        return null;
    end if;

    if counterfoil.event_kind(p_event_type) = 'terminal' then
        v_terminal_seq := v_seq;
    elsif counterfoil.is_public_wait(p_event_type, p_payload) then
        v_wait_seq := v_seq;
    end if;

    v_wakes := counterfoil.queue_lane(p_org_id, p_run_id, v_lane, v_seq, v_seq, v_terminal_seq, v_wait_seq, p_now);
    if v_wakes then
        perform counterfoil.wake(v_lane);
    end if;
    return v_seq;
end
$function$;

comment on function counterfoil.write_fact(text, text, text, text, jsonb, timestamptz) is
'Writes one fact of a run whose row lock the caller holds: the outbox row, the lane, and a wake-up. Answers its seq, or null when the org knows the event id already. Private.';

revoke all on function counterfoil.write_fact(text, text, text, text, jsonb, timestamptz) from public;
