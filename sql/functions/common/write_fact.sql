-- write_fact: writes one new fact of a run, in a few statements by key.
--
-- Promises: the fact gets the run's next position and its lane is up for delivery; answers the position, or null, with
--           nothing written, when the org has a fact of that event id. What write_facts does for many facts, without
--           the cost of a statement for many. The run has a counter.
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
    v_lane text;
    v_terminal_seq bigint;
    v_wait_seq bigint;
    v_wakes boolean;
    v_seq bigint;
begin
    -- The run's row, which orders writers, is not written: a caller with an older snapshot fails here, with 40001.
    update counterfoil.fact_counters as c
    set last_seq = c.last_seq + 1, facts = c.facts + 1
    where c.org_id = p_org_id and c.run_id = p_run_id
    returning c.last_seq into strict v_seq;

    insert into counterfoil.outbox as o (
        org_id, run_id, seq, event_id, event_type, lane, deferred, payload, delivery_key, created_at
    )
    values (
        p_org_id, p_run_id, v_seq, p_event_id, p_event_type, counterfoil.fact_lane(p_payload),
        coalesce(p_payload -> 'deferredProjection' = 'true'::jsonb, false), p_payload, v_delivery_key, p_now
    )
    on conflict on constraint outbox_event_id_key do nothing
    returning o.lane into v_lane;
    if v_lane is null then
        update counterfoil.fact_counters as c
        set last_seq = v_seq - 1, facts = c.facts - 1
        where c.org_id = p_org_id and c.run_id = p_run_id;
        return null;
    end if;

    if counterfoil.event_kind(p_event_type) = 'terminal' then
        v_terminal_seq := v_seq;
    elsif counterfoil.is_public_wait(p_event_type, p_payload) then
        v_wait_seq := v_seq;
    end if;

    insert into counterfoil.lanes as l (
        org_id, run_id, lane, priority, due_at, head_seq, tail_seq, terminal_seq, wait_seq
    )
    values (
        p_org_id, p_run_id, v_lane, counterfoil.lane_priority(v_seq, v_terminal_seq, v_wait_seq), p_now,
        v_seq, v_seq, v_terminal_seq, v_wait_seq
    )
    on conflict on constraint lanes_pkey do update
    set
        tail_seq = excluded.tail_seq,
        terminal_seq = coalesce(excluded.terminal_seq, l.terminal_seq),
        wait_seq = coalesce(excluded.wait_seq, l.wait_seq),
        -- A lane that becomes more urgent goes to the back of its new class:
        -- nothing may appear behind a dispatcher's mark.
        priority = least(l.priority, excluded.priority),
        due_at = case when excluded.priority < l.priority then greatest(l.due_at, excluded.due_at) else l.due_at end
    -- Only a row that was just inserted has no deleter: the lane was empty before.
    returning l.xmax = 0 and exists (select from counterfoil.listeners as s where s.queue = l.lane) into v_wakes;

    if v_wakes then
        perform counterfoil.wake(v_lane);
    end if;
    return v_seq;
end
$function$;

comment on function counterfoil.write_fact(text, text, text, text, jsonb, timestamptz) is
'Writes one fact of a run whose row lock the caller holds: the outbox row, the counter, the lane, and a wake-up. Answers its seq, or null when the org knows the event id already. Private.';

revoke all on function counterfoil.write_fact(text, text, text, text, jsonb, timestamptz) from public;
