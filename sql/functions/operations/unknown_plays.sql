-- unknown_plays: plays that are queued for workers that do not exist.
--
-- Promises: [{releaseLane, playName}, …] of runs ready for a worker, now or later, whose play no worker of their release lane has
--           said it can execute in the last five minutes; at most 100, found by hopping through the index.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.unknown_plays(p_now timestamptz)
returns jsonb
language sql
stable
parallel safe
strict
security invoker
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $function$
    with recursive plays as (
        (
            select f.release_lane, f.play_name, 1 as hops
            from (
                select q.release_lane, q.play_name
                from (
                    (
                        select r.release_lane, r.play_name
                        from counterfoil.run_queue as r
                        where r.state = 'ready'
                        order by r.release_lane, r.play_name
                        limit 1
                    )
                    union all
                    (
                        select s.release_lane, s.play_name
                        from counterfoil.run_queue as s
                        where s.state = 'sleeping'
                        order by s.release_lane, s.play_name
                        limit 1
                    )
                ) as q
                order by q.release_lane, q.play_name
                limit 1
            ) as f
        )
        union all
        select n.release_lane, n.play_name, p.hops + 1
        from plays as p
        cross join lateral (
            select q.release_lane, q.play_name
            from (
                (
                    select r.release_lane, r.play_name
                    from counterfoil.run_queue as r
                    where r.state = 'ready' and (r.release_lane, r.play_name) > (p.release_lane, p.play_name)
                    order by r.release_lane, r.play_name
                    limit 1
                )
                union all
                (
                    select s.release_lane, s.play_name
                    from counterfoil.run_queue as s
                    where s.state = 'sleeping' and (s.release_lane, s.play_name) > (p.release_lane, p.play_name)
                    order by s.release_lane, s.play_name
                    limit 1
                )
            ) as q
            order by q.release_lane, q.play_name
            limit 1
        ) as n
        where p.hops < 1000
    )

    select coalesce(jsonb_agg(jsonb_build_object('releaseLane', u.release_lane, 'playName', u.play_name)), '[]'::jsonb)
    from (
        select p.release_lane, p.play_name
        from plays as p
        where not exists (
            select
            from counterfoil.workers as w
            where
                w.release_lane = p.release_lane and w.last_seen_at > p_now - interval '5 minutes'
                and (w.plays = '{}' or p.play_name = any(w.plays))
        )
        order by p.release_lane, p.play_name
        limit 100
    ) as u
$function$;

comment on function counterfoil.unknown_plays(timestamptz) is
'Queued plays that no worker seen in the last five minutes can execute, as a JSON array. Private.';

revoke all on function counterfoil.unknown_plays(timestamptz) from public;
