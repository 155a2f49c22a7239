-- add_to_counters: changes an org's numbers of queued and active runs.
--
-- Promises: adds p_queued and p_active (often negative) to the rows that lock_counters() named.
-- Locks:    nothing new.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.add_to_counters(
    p_org_id text, p_shards smallint[], p_queued bigint, p_active bigint
)
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
    v_freed_at timestamptz := case when p_queued < 0 then clock_timestamp() end;
begin
    if p_queued = 0 and p_active = 0 then
        return;
    end if;
    if p_shards[1] is not null then
        update counterfoil.admission_counters as c
        set queued = c.queued + p_queued, active = c.active + p_active, freed_at = coalesce(v_freed_at, c.freed_at)
        where c.org_id = '' and c.shard = p_shards[1];
    end if;
    if p_shards[2] is not null then
        update counterfoil.admission_counters as c
        set queued = c.queued + p_queued, active = c.active + p_active, freed_at = coalesce(v_freed_at, c.freed_at)
        where c.org_id = p_org_id and c.shard = p_shards[2];
    end if;
end
$function$;

comment on function counterfoil.add_to_counters(text, smallint[], bigint, bigint) is
'Adds to the numbers of queued and active runs in the rows that lock_counters named. Private.';

revoke all on function counterfoil.add_to_counters(text, smallint[], bigint, bigint) from public;
