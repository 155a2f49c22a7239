-- take_active_places: how many more runs of an org may run now.
--
-- Promises: at most p_wanted, and that many are counted as active at once; the caller gives back what it does not use.
--           p_maximum null means no limit. Each of the sixteen rows holds its share of the limit and no more, so the
--           sum cannot go over it. 0 when there is no room, or others hold the rows that have some.
-- Locks:    rows of admission_counters, skipping those that are locked: it waits for nobody.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.take_active_places(p_org_id text, p_wanted bigint, p_maximum bigint)
returns bigint
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
    v_taken bigint := 0::bigint;
    v_room bigint;
    v_row record;
begin
    for v_row in
        select c.shard, counterfoil.counter_share(p_maximum, c.shard) as share
        from counterfoil.admission_counters as c
        where c.org_id = p_org_id
            and c.active < coalesce(counterfoil.counter_share(p_maximum, c.shard), 9223372036854775807)
        order by (c.shard + 16 - pg_backend_pid() % 16) % 16
    loop
        -- Locked by its key alone and looked at again: the row may have changed since.
        select least(v_row.share - c.active, p_wanted - v_taken) into v_room
        from counterfoil.admission_counters as c
        where c.org_id = p_org_id and c.shard = v_row.shard
        for no key update skip locked;
        if v_room > 0 then
            update counterfoil.admission_counters as c
            set active = c.active + v_room
            where c.org_id = p_org_id and c.shard = v_row.shard;
            v_taken := v_taken + v_room;
        end if;
        exit when v_taken >= p_wanted;
    end loop;
    return v_taken;
end
$function$;

comment on function counterfoil.take_active_places(text, bigint, bigint) is
'Counts up to p_wanted more runs of an org (empty: of all orgs) as active, within p_maximum, and says how many. Private.';

revoke all on function counterfoil.take_active_places(text, bigint, bigint) from public;
