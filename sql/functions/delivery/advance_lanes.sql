-- advance_lanes: moves lanes past what was delivered.
--
-- Promises: each lane's pending facts begin after its through position, its lease and frozen receipt are gone, and the
--           delivery is in the log; the row goes when nothing is left. No fact is touched. A lane with facts left is due
--           now, at the end of its class.
-- Locks:    the caller holds the lanes and has proven the lease.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.advance_lanes(
    p_org_ids text[],
    p_run_ids text[],
    p_lane text,
    p_through_seqs bigint[],
    p_lease_owner text,
    p_now timestamptz
)
returns void
language plpgsql
volatile
parallel unsafe
called on null input
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_material = off
set jit = off
as $function$
declare
    v_failing record;
begin
    with held as materialized (
        select
            l.row_at, l.org_id, l.run_id, l.head_seq, l.tail_seq, l.failures, l.receipt_key, l.receipt_frozen_at,
            g.through_seq, l.tail_seq = g.through_seq as is_done
        from unnest(p_org_ids, p_run_ids, p_through_seqs) as g (org_id, run_id, through_seq)
        -- By key, whatever a plan made while the table was small would rather read; from the newest, since before it
        -- may lie what was delivered and is not cleaned away yet.
        cross join lateral (
            select k.*, k.ctid as row_at
            from counterfoil.lanes as k
            where k.org_id = g.org_id and k.run_id = g.run_id and k.lane = p_lane
            order by k.head_seq desc
            limit 1
        ) as l
    ),

    done as (
        delete from counterfoil.lanes as l
        using held as h
        where h.is_done and l.ctid = h.row_at
    ),

    advanced as (
        update counterfoil.lanes as l
        set
            head_seq = h.through_seq + 1,
            terminal_seq = case when l.terminal_seq > h.through_seq then l.terminal_seq end,
            wait_seq = case when l.wait_seq > h.through_seq then l.wait_seq end,
            priority = case
                when l.terminal_seq > h.through_seq then 1
                when l.wait_seq > h.through_seq then 2
                else 3
            end,
            due_at = p_now,
            lease_owner = null,
            lease_expires_at = null,
            lease_through_seq = null,
            receipt_key = null,
            receipt_through_seq = null,
            receipt_frozen_at = null,
            receipt_piece_max_events = null,
            receipt_piece_max_bytes = null
        from held as h
        where not h.is_done and l.ctid = h.row_at
    ),

    cleared as (
        delete from counterfoil.fact_failures as x
        using held as h
        where
            h.failures > 0 and x.org_id = h.org_id and x.run_id = h.run_id and x.lane = p_lane
            and x.seq between h.head_seq and h.through_seq
    ),

    logged as (
        insert into counterfoil.deliveries (
            org_id, run_id, lane, first_seq, last_seq, outcome, idempotency_key, lease_owner, frozen_at, delivered_at
        )
        select
            h.org_id, h.run_id, p_lane, h.head_seq, h.through_seq, 'delivered',
            h.receipt_key, p_lease_owner, h.receipt_frozen_at, p_now
        from held as h
    )

    select array_agg(h.org_id) as org_ids, array_agg(h.run_id) as run_ids
    into v_failing
    from held as h
    where h.failures > 0 and not h.is_done;

    if v_failing.org_ids is not null then
        perform counterfoil.settle_lane_head(g.org_id, g.run_id, p_lane, p_now)
        from unnest(v_failing.org_ids, v_failing.run_ids) as g (org_id, run_id);
    end if;
end
$function$;

comment on function counterfoil.advance_lanes(text[], text[], text, bigint[], text, timestamptz) is
'Moves lanes (parallel arrays) that the caller has locked and proven past their through positions and logs the deliveries. Private.';

revoke all on function counterfoil.advance_lanes(text[], text[], text, bigint[], text, timestamptz) from public;
