-- queued_plays: the plays that have runs waiting for a worker in a release lane.
--
-- Promises: each name once, by jumps along two indexes: the cost is that of the number of plays, not of runs.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.queued_plays(p_release_lane text)
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
    v_plays text[] := array[]::text[];
    v_play text := '';
begin
    loop
        select least(
            (
                select q.play_name
                from counterfoil.run_queue as q
                where q.release_lane = p_release_lane and q.state = 'ready' and q.play_name > v_play
                order by q.play_name
                limit 1
            ),
            (
                select q.play_name
                from counterfoil.run_queue as q
                where q.release_lane = p_release_lane and q.state = 'sleeping' and q.play_name > v_play
                order by q.play_name
                limit 1
            )
        )
        into v_play;
        exit when v_play is null;
        v_plays := v_plays || v_play;
    end loop;
    return v_plays;
end
$function$;

comment on function counterfoil.queued_plays(text) is
'Names of the plays with runs that are ready or sleeping in a release lane. Private.';

revoke all on function counterfoil.queued_plays(text) from public;
