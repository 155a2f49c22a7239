-- next_ready_orgs: whose turn it is.
--
-- Promises: up to p_limit orgs that have a ready run of the plays, in the order of the ring: those after p_after, then
--           from the start up to p_after itself; each once. By jumps along the index, one for each org and play.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.next_ready_orgs(
    p_release_lane text, p_plays text[], p_after text, p_limit integer
)
returns text[]
language plpgsql
stable
parallel safe
strict
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set jit = off
as $function$
declare
    v_orgs text[] := array[]::text[];
    v_org text := p_after;
    v_wrapped boolean := false;
begin
    while cardinality(v_orgs) < p_limit loop
        select min(h.org_id) into v_org
        from unnest(p_plays) as p (play_name)
        cross join lateral (
            select q.org_id
            from counterfoil.run_queue as q
            where q.release_lane = p_release_lane
                and q.play_name = p.play_name
                and q.state = 'ready'
                and q.org_id > v_org
            order by q.org_id
            limit 1
        ) as h;
        -- The ring runs as the index does, whatever the database's collation.
        if v_wrapped and (v_org is null or v_org > p_after collate "C") then
            exit;
        elsif v_org is null then
            -- Once round: the ring closes at the org it began after.
            v_wrapped := true;
            v_org := '';
        else
            v_orgs := v_orgs || v_org;
        end if;
    end loop;
    return v_orgs;
end
$function$;

comment on function counterfoil.next_ready_orgs(text, text[], text, integer) is
'Orgs with a ready run of the plays, in ring order after p_after, at most p_limit. Private.';

revoke all on function counterfoil.next_ready_orgs(text, text[], text, integer) from public;
