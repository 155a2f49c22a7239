-- queue_facts: puts new facts of one run's lane up for delivery.
--
-- Promises: the lane ends at p_last_seq and has the urgency of what was added; it begins at p_first_seq when nothing was
--           pending. Sleepers are woken when the lane was empty before. Answers p_last_seq.
-- Locks:    the caller holds the run's row; then the lane, upserted.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.queue_facts(
    p_org_id text,
    p_run_id text,
    p_lane text,
    p_first_seq bigint,
    p_last_seq bigint,
    p_terminal_seq bigint,
    p_wait_seq bigint,
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
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $function$
declare
    v_filled boolean;
begin
    insert into counterfoil.lanes as l (
        org_id, run_id, lane, priority, due_at, head_seq, tail_seq, terminal_seq, wait_seq
    )
    values (
        p_org_id, p_run_id, p_lane,
        case when p_first_seq = 1 then 0 when p_terminal_seq is not null then 1 when p_wait_seq is not null then 2 else 3 end,
        p_now, p_first_seq, p_last_seq, p_terminal_seq, p_wait_seq
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
    returning l.xmax = 0 into v_filled;

    if v_filled and exists (select from counterfoil.listeners as s where s.queue = p_lane) then
        perform counterfoil.wake(p_lane);
    end if;
    return p_last_seq;
end
$function$;

comment on function counterfoil.queue_facts(text, text, text, bigint, bigint, bigint, bigint, timestamptz) is
'Puts facts p_first_seq to p_last_seq of a lane up for delivery, with the positions of a terminal and of the last public wait among them, and wakes sleepers when the lane was empty; answers p_last_seq. Private.';

revoke all on function counterfoil.queue_facts(text, text, text, bigint, bigint, bigint, bigint, timestamptz) from public;
