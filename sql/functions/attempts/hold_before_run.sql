-- hold_before_run: takes what comes before the run in the order of locks, for a change of its status.
--
-- Promises: the counter rows to count the run in (see add_to_counters); the row of its concurrency key is locked too.
--           With p_wait false it waits for nobody, and is null when something was taken or the run is gone.
-- Locks:    admission_counters, then concurrency_keys; hold_run() comes next.
-- Raises:   RL002 run_not_found (p_wait only).
-- Since:    1

create or replace function counterfoil.hold_before_run(p_org_id text, p_run_id text, p_wait boolean)
returns smallint[]
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
    v_key text;
    v_shards smallint[];
begin
    -- A run's key never changes: it may be read before the run is locked.
    select r.concurrency_key into v_key from counterfoil.runs as r where r.org_id = p_org_id and r.run_id = p_run_id;
    if not found then
        if p_wait then
            perform counterfoil.raise_run_not_found(p_run_id);
        end if;
        return null;
    end if;

    v_shards := counterfoil.lock_counters(p_org_id, p_wait);
    if v_key is null or v_shards is null then
        return v_shards;
    elsif p_wait then
        perform
        from counterfoil.concurrency_keys as k
        where k.org_id = p_org_id and k.concurrency_key = v_key
        for no key update;
        return v_shards;
    end if;

    perform
    from counterfoil.concurrency_keys as k
    where k.org_id = p_org_id and k.concurrency_key = v_key
    for no key update skip locked;
    return case when found then v_shards end;
end
$function$;

comment on function counterfoil.hold_before_run(text, text, boolean) is
'Locks the counters and the concurrency key of a run, in this order, before the run itself; null when p_wait is false and something was taken. Private.';

revoke all on function counterfoil.hold_before_run(text, text, boolean) from public;
