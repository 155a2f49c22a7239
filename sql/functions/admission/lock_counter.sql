-- lock_counter: holds one of the sixteen rows of an org's counter.
--
-- Promises: the number of a row that is locked until the transaction ends, for add_to_counter(); null when p_wait is
--           false and others hold them all. Prefers a row that nobody holds. Empty org: the installation's counter.
-- Locks:    one row of admission_counters; before any run's. The installation's before an org's.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.lock_counter(p_org_id text, p_wait boolean)
returns smallint
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
    -- A connection keeps to its own row, so that few meet.
    v_own integer := pg_backend_pid() % 16;
    v_shard smallint;
begin
    select c.shard into v_shard
    from counterfoil.admission_counters as c
    where c.org_id = p_org_id and c.shard = v_own
    for no key update skip locked;
    if found then
        return v_shard;
    end if;

    select c.shard into v_shard
    from counterfoil.admission_counters as c
    where c.org_id = p_org_id
    for no key update skip locked
    limit 1;
    if found or not p_wait then
        return v_shard;
    end if;

    insert into counterfoil.admission_counters as c (org_id, shard)
    values (p_org_id, v_own)
    on conflict on constraint admission_counters_pkey do update set queued = c.queued
    returning c.shard into v_shard;
    return v_shard;
end
$function$;

comment on function counterfoil.lock_counter(text, boolean) is
'Locks one of the sixteen rows of an org''s counter (empty: the installation''s) and says which; null when it may not wait and all are taken. Private.';

revoke all on function counterfoil.lock_counter(text, boolean) from public;
