-- queue_lane: puts new facts of a run up for delivery in their lane.
--
-- Promises: the lane's row reaches to p_last_seq and tells of a terminal and a public wait among the new facts; where the
--           lane was empty a row begins at p_first_seq, due now, and the answer is true when somebody may sleep until then.
-- Locks:    the caller holds the run's row, so nobody else fills the lane; the lane's row, waiting for a dispatcher.
-- Raises:   40001 in a repeatable read transaction that is older than retention can be.
-- Since:    1

create or replace function counterfoil.queue_lane(
    p_org_id text,
    p_run_id text,
    p_lane text,
    p_first_seq bigint,
    p_last_seq bigint,
    p_terminal_seq bigint,
    p_wait_seq bigint,
    p_now timestamptz
)
returns boolean
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
    v_priority smallint := counterfoil.lane_priority(p_first_seq, p_terminal_seq, p_wait_seq);
    v_wakes boolean;
begin
    -- What came after such a snapshot, was delivered and removed is not seen: its position would be given once more.
    if
        transaction_timestamp() < p_now - interval '1 hour'
        and current_setting('transaction_isolation') <> 'read committed'
    then
        perform counterfoil.raise_serialization_failure(
            'This transaction is too old to append: retention may have removed facts that it cannot see.',
            'snapshot_too_old', 'Begin a new transaction, or use read committed.'
        );
    end if;

    update counterfoil.lanes as l
    set
        tail_seq = p_last_seq,
        terminal_seq = coalesce(p_terminal_seq, l.terminal_seq),
        wait_seq = coalesce(p_wait_seq, l.wait_seq),
        -- A lane that becomes more urgent goes to the back of its new class:
        -- nothing may appear behind a dispatcher's mark.
        priority = least(l.priority, v_priority),
        due_at = case when v_priority < l.priority then greatest(l.due_at, p_now) else l.due_at end
    where
        l.org_id = p_org_id and l.run_id = p_run_id and l.lane = p_lane
        -- What is pending begins behind what is delivered: so no row of that, which an open snapshot may keep, is passed.
        and l.head_seq > coalesce((
            select d.last_seq
            from counterfoil.deliveries as d
            where d.org_id = p_org_id and d.run_id = p_run_id and d.lane = p_lane
            order by d.first_seq desc
            limit 1
        ), 0);
    if found then
        return false;
    end if;

    insert into counterfoil.lanes (
        org_id, run_id, lane, priority, due_at, head_seq, tail_seq, terminal_seq, wait_seq
    )
    values (p_org_id, p_run_id, p_lane, v_priority, p_now, p_first_seq, p_last_seq, p_terminal_seq, p_wait_seq)
    returning exists (select from counterfoil.listeners as s where s.queue = p_lane) into v_wakes;
    return v_wakes;
end
$function$;

comment on function counterfoil.queue_lane(text, text, text, bigint, bigint, bigint, bigint, timestamptz) is
'Puts new facts of a run, whose row lock the caller holds, up for delivery in their lane: p_first_seq to p_last_seq, with the positions of a terminal and a public wait among them, or null. True when the lane was empty and has listeners: wake them. Private.';

revoke all on function counterfoil.queue_lane(text, text, text, bigint, bigint, bigint, bigint, timestamptz) from public;
