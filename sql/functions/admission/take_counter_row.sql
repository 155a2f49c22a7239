-- take_counter_row: counts launches in through one row of a counter that has room for them and that nobody holds.
--
-- Promises: true when one of the given rows has taken them; false when others hold all of them. The row may take p_most_queued
--           and p_most_launches by its share of the limits; null for no limit.
-- Locks:    that row of admission_counters, skipping those that are locked: it waits for nobody.
-- Raises:   RL006 when a row lost its room between looking and locking: nothing was counted, but the row stays locked.
-- Since:    1

create or replace function counterfoil.take_counter_row(
    p_org_id text,
    p_count bigint,
    p_max_queued bigint,
    p_launches_per_minute bigint,
    p_minute timestamptz,
    p_shards smallint[]
)
returns boolean
language plpgsql
volatile
parallel unsafe
called on null input
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $function$
declare
    v_latest timestamptz := p_minute + interval '1 minute';
    v_shard smallint;
    v_holding boolean := false;
begin
    foreach v_shard in array coalesce(p_shards, '{}') loop
        perform
        from counterfoil.admission_counters as c
        where c.org_id = p_org_id and c.shard = v_shard
        for no key update skip locked;
        if found then
            v_holding := true;
            update counterfoil.admission_counters as c
            set
                queued = c.queued + p_count,
                window_launches = case when c.window_start between p_minute and v_latest then c.window_launches else 0 end + p_count,
                window_start = case when c.window_start between p_minute and v_latest then c.window_start else p_minute end
            where c.org_id = p_org_id
                and c.shard = v_shard
                and c.queued + p_count <= coalesce(counterfoil.counter_share(p_max_queued, c.shard), 9223372036854775807)
                and case when c.window_start between p_minute and v_latest then c.window_launches else 0 end + p_count
                <= coalesce(counterfoil.counter_share(p_launches_per_minute, c.shard), 9223372036854775807);
            if found then
                return true;
            end if;
        end if;
    end loop;
    if v_holding then
        -- Locking the rows in order now, with one in hand, could end in a deadlock.
        perform counterfoil.raise_capacity('Too many admissions arrived at once.', 'admission', 50);
    end if;
    return false;
end
$function$;

comment on function counterfoil.take_counter_row(text, bigint, bigint, bigint, timestamptz, smallint[]) is
'Counts launches in through one of the given rows of a counter, whichever has room and is not locked; false when all are locked. Private.';

revoke all on function counterfoil.take_counter_row(text, bigint, bigint, bigint, timestamptz, smallint[]) from public;
