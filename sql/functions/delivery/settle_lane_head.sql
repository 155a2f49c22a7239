-- settle_lane_head: brings a lane's row in line with what failed in it.
--
-- Promises: the head hops over facts that an operator skipped, and each is in the delivery log as skipped; the row ends
--           when nothing else is pending. A blocked head, or a blocked fact in the frozen receipt, blocks the lane; one
--           that waits for its retry makes the lane due then; else it is due now. Marks, priority and count are right.
-- Locks:    the caller holds the lane.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.settle_lane_head(p_org_id text, p_run_id text, p_lane text, p_now timestamptz)
returns void
language plpgsql
volatile
parallel unsafe
called on null input
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $function$
declare
    v_lane record;
    v_head_seq bigint;
    v_failures record;
begin
    select l.head_seq, l.tail_seq, l.receipt_through_seq
    into strict v_lane
    from counterfoil.lanes as l
    where l.org_id = p_org_id and l.run_id = p_run_id and l.lane = p_lane;

    select o.seq
    into v_head_seq
    from counterfoil.outbox as o
    where
        o.org_id = p_org_id and o.run_id = p_run_id and o.lane = p_lane and o.seq >= v_lane.head_seq
        and not exists (
            select
            from counterfoil.fact_failures as x
            where x.org_id = p_org_id and x.run_id = p_run_id and x.seq = o.seq and x.state = 'skipped'
        )
    order by o.seq
    limit 1;

    with hopped as (
        delete from counterfoil.fact_failures as x
        where
            x.org_id = p_org_id and x.run_id = p_run_id and x.lane = p_lane and x.state = 'skipped'
            and x.seq < coalesce(v_head_seq, v_lane.tail_seq + 1)
        returning x.seq, x.skipped_by
    )

    insert into counterfoil.deliveries (
        org_id, run_id, lane, first_seq, last_seq, outcome, lease_owner, delivered_at
    )
    select p_org_id, p_run_id, p_lane, h.seq, h.seq, 'skipped', h.skipped_by, p_now
    from hopped as h;

    if v_head_seq is null then
        delete from counterfoil.lanes as l
        where l.org_id = p_org_id and l.run_id = p_run_id and l.lane = p_lane;
        return;
    end if;

    select
        count(*) as pending,
        min(x.blocked_at) filter (
            where x.state = 'blocked' and x.seq <= coalesce(v_lane.receipt_through_seq, v_head_seq)
        ) as blocked_at,
        max(x.next_attempt_at) filter (
            where x.state = 'retrying' and x.seq <= coalesce(v_lane.receipt_through_seq, v_head_seq)
        ) as retry_at
    into v_failures
    from counterfoil.fact_failures as x
    where x.org_id = p_org_id and x.run_id = p_run_id and x.lane = p_lane and x.seq >= v_head_seq;

    update counterfoil.lanes as l
    set
        head_seq = v_head_seq,
        terminal_seq = case when l.terminal_seq >= v_head_seq then l.terminal_seq end,
        wait_seq = case when l.wait_seq >= v_head_seq then l.wait_seq end,
        priority = case
            when v_head_seq = 1 then 0
            when l.terminal_seq >= v_head_seq then 1
            when l.wait_seq >= v_head_seq then 2
            else 3
        end,
        failures = v_failures.pending,
        blocked_at = v_failures.blocked_at,
        due_at = greatest(p_now, v_failures.retry_at)
    where l.org_id = p_org_id and l.run_id = p_run_id and l.lane = p_lane;
end
$function$;

comment on function counterfoil.settle_lane_head(text, text, text, timestamptz) is
'Recomputes head, due time, block, marks and failure count of a lane that the caller has locked. Private.';

revoke all on function counterfoil.settle_lane_head(text, text, text, timestamptz) from public;
