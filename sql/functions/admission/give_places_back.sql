-- give_places_back: counts launches out that were counted in during the same statement.
--
-- Promises: places of the org (empty: the installation) are as if these launches had not come; but for those in a minute that
--           ended in between, in which nobody can launch any more.
-- Locks:    a row of admission_counters that the caller holds already, or nobody does.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.give_places_back(p_org_id text, p_count bigint)
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
    v_minute timestamptz := date_trunc('minute', clock_timestamp(), 'UTC');
    v_latest timestamptz := v_minute + interval '1 minute';
    -- What was counted in during this statement was counted in this minute, if the statement began in it.
    v_same_minute boolean := date_trunc('minute', statement_timestamp(), 'UTC') = v_minute;
    -- It need not be the row that they were counted in: the sum is what is exact.
    v_shard smallint := counterfoil.lock_counter(p_org_id, true);
begin
    update counterfoil.admission_counters as c
    set
        queued = c.queued - p_count,
        window_launches = case when c.window_start between v_minute and v_latest then c.window_launches else 0 end
        - case when v_same_minute then p_count else 0 end,
        window_start = case when c.window_start between v_minute and v_latest then c.window_start else v_minute end
    where c.org_id = p_org_id and c.shard = v_shard;
end
$function$;

comment on function counterfoil.give_places_back(text, bigint) is
'Counts launches out of an org (empty: the installation) that the same statement counted in. Private.';

revoke all on function counterfoil.give_places_back(text, bigint) from public;
