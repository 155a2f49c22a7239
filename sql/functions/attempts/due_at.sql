-- due_at: when a claim is next worth while.
--
-- Promises: since when or from when a run of the plays (null or empty: any) in the release lane can be claimed; null when
--           none waits but for a slot, an event, room under a limit, or nothing. Reads a few index entries for each play.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.due_at(p_plays text[], p_release_lane text)
returns timestamptz
language plpgsql
stable
parallel safe
called on null input
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set jit = off
as $function$
declare
    v_plays text[] := p_plays;
    v_due_at timestamptz;
begin
    if coalesce(cardinality(v_plays), 0) = 0 then
        v_plays := counterfoil.queued_plays(p_release_lane);
    end if;

    select min(r.ready_at) into v_due_at
    from unnest(v_plays) as p (play_name)
    cross join lateral (
        select q.ready_at
        from counterfoil.run_queue as q
        where q.release_lane = p_release_lane and q.play_name = p.play_name and q.state = 'ready'
        order by q.org_id, q.priority, q.queued_at
        limit 1
    ) as r;
    if v_due_at is null or not counterfoil.may_start(p_release_lane, v_plays) then
        select min(s.ready_at) into v_due_at
        from unnest(v_plays) as p (play_name)
        cross join lateral (
            select q.ready_at
            from counterfoil.run_queue as q
            where q.release_lane = p_release_lane and q.play_name = p.play_name and q.state = 'sleeping'
            order by q.ready_at
            limit 1
        ) as s;
    end if;
    return v_due_at;
end
$function$;

comment on function counterfoil.due_at(text[], text) is
'When a run of the plays (null or empty: any) in a release lane is next claimable; null when none is known. Private.';

revoke all on function counterfoil.due_at(text[], text) from public;
