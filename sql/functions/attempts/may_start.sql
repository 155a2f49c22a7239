-- may_start: whether the limits let a ready run start.
--
-- Promises: false when no org with a ready run of the plays has room under max_active, or the installation has none. Looks at
--           a hundred orgs; where there are more it says true, and the claim finds out.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.may_start(p_release_lane text, p_plays text[])
returns boolean
language plpgsql
stable
parallel safe
strict
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $function$
declare
    v_orgs text[];
begin
    if not exists (select from counterfoil.admission_limits as a where a.max_active is not null) then
        return true;
    end if;
    if
        (select r.all_max_active from counterfoil.admission_rules('') as r)
        <= (select coalesce(sum(c.active), 0) from counterfoil.admission_counters as c where c.org_id = '')
    then
        return false;
    end if;
    v_orgs := counterfoil.next_ready_orgs(p_release_lane, p_plays, '', 100);
    return cardinality(v_orgs) = 100
        or exists (
            select
            from unnest(v_orgs) as o (org_id)
            cross join lateral counterfoil.admission_rules(o.org_id) as r
            where r.max_active is null
                or r.max_active
                > (select coalesce(sum(c.active), 0) from counterfoil.admission_counters as c where c.org_id = o.org_id)
        );
end
$function$;

comment on function counterfoil.may_start(text, text[]) is
'Whether the limits on active runs let a ready run of the plays start. Private.';

revoke all on function counterfoil.may_start(text, text[]) from public;
