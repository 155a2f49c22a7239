-- add_to_counters: changes an org's numbers of queued and active runs.
--
-- Promises: adds p_queued and p_active (often negative) to the rows that lock_counters() named. Where a place among the active
--           comes free that runs may have waited for, sleeping workers are woken.
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
    v_rules record;
begin
    if p_queued = 0 and p_active = 0 then
        return;
    end if;
    if p_shards[1] is not null then
        perform counterfoil.change_counter('', p_shards[1], p_queued, p_active);
    end if;
    if p_shards[2] is not null then
        perform counterfoil.change_counter(p_org_id, p_shards[2], p_queued, p_active);
    end if;
    if
        p_active < 0
        and num_nonnulls(p_shards[1], p_shards[2]) > 0
        and exists (select from counterfoil.listeners as l where l.queue = 'attempts')
    then
        select r.max_active, r.all_max_active into strict v_rules from counterfoil.admission_rules(p_org_id) as r;
        if
            exists (
                select
                from counterfoil.admission_counters as c
                where c.org_id in ('', p_org_id)
                group by c.org_id
                having sum(c.active) - p_active >= case when c.org_id = '' then v_rules.all_max_active else v_rules.max_active end
            )
        then
            perform counterfoil.wake('attempts');
        end if;
    end if;
end
$function$;

comment on function counterfoil.add_to_counters(text, smallint[], bigint, bigint) is
'Adds to the numbers of queued and active runs in the rows that lock_counters named. Private.';

revoke all on function counterfoil.add_to_counters(text, smallint[], bigint, bigint) from public;
