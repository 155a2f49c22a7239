-- change_counter: changes one row of an org's numbers of queued and active runs.
--
-- Promises: adds p_queued and p_active (often negative) to the row. Runs that leave the queue are remembered, each for less
--           the longer ago it was, so that a launch that finds no place can be told how fast places come free.
-- Locks:    nothing new: the caller holds the row.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.change_counter(p_org_id text, p_shard smallint, p_queued bigint, p_active bigint)
returns void
language plpgsql
volatile
parallel unsafe
strict
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $function$
declare
    v_freed_at timestamptz;
begin
    if p_queued >= 0 then
        update counterfoil.admission_counters as c
        set queued = c.queued + p_queued, active = c.active + p_active
        where c.org_id = p_org_id and c.shard = p_shard;
    else
        v_freed_at := clock_timestamp();
        update counterfoil.admission_counters as c
        set
            queued = c.queued + p_queued,
            active = c.active + p_active,
            freed_lately = counterfoil.faded(c.freed_lately, c.freed_at, v_freed_at) - p_queued,
            freed_at = v_freed_at
        where c.org_id = p_org_id and c.shard = p_shard;
    end if;
end
$function$;

comment on function counterfoil.change_counter(text, smallint, bigint, bigint) is
'Adds to the numbers of queued and active runs in one row of a counter, and remembers how many left the queue. Private.';

revoke all on function counterfoil.change_counter(text, smallint, bigint, bigint) from public;
