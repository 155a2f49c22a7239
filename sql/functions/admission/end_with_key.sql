-- end_with_key: takes an ended run out of its concurrency key.
--
-- Promises: one unended run less, its slot free if it had one and given to the next held run; no row is left for a key
--           that no unended run has. Says whether a held run became ready.
-- Locks:    the caller holds the key's row.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.end_with_key(p_org_id text, p_key text, p_had_slot boolean)
returns boolean
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
begin
    delete from counterfoil.concurrency_keys as k
    where k.org_id = p_org_id and k.concurrency_key = p_key and k.unended = 1;
    if found then
        return false;
    end if;

    update counterfoil.concurrency_keys as k
    set unended = k.unended - 1, in_use = k.in_use - p_had_slot::integer
    where k.org_id = p_org_id and k.concurrency_key = p_key;
    return counterfoil.promote_held(array[p_org_id], array[p_key]);
end
$function$;

comment on function counterfoil.end_with_key(text, text, boolean) is
'Takes an ended run out of its concurrency key and gives its slot to the next held run. Private.';

revoke all on function counterfoil.end_with_key(text, text, boolean) from public;
