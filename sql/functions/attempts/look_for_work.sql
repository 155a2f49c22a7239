-- look_for_work: what a worker without work asks, once per poll.
--
-- Promises: when there will be something to do: since when or from when a run of the plays (null or empty: any) can be
--           claimed, or a schedule is to be looked at; null when neither is known. While nothing can be claimed it looks
--           after the installation: it recovers up to p_limit runs of the lane or, where there is nothing to recover, fires up to
--           p_limit schedules. It notes that the worker is alive and keeps its registration as p_listener (null: none)
--           from running out, or has it again, after a process was stopped for a while.
-- Locks:    what recover_attempts() locks, or what fire_due_schedules() locks, never both; then its own rows of workers and
--           listeners.
-- Raises:   RL001.
-- Since:    1

create or replace function counterfoil.look_for_work(
    p_worker text, p_plays text[], p_release_lane text, p_limit integer, p_listener text default null
)
returns timestamptz
language plpgsql
volatile
parallel unsafe
called on null input
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set jit = off
as $function$
declare
    v_lane text := coalesce(p_release_lane, 'default');
    v_now timestamptz := clock_timestamp();
    v_due_at timestamptz;
    v_done bigint;
begin
    perform counterfoil.check_id(p_worker, 'p_worker');
    perform counterfoil.check_id(v_lane, 'p_release_lane');
    perform counterfoil.check_limit(p_limit, 1, 1000, 'p_limit');
    v_due_at := counterfoil.due_at(p_plays, v_lane);
    if v_due_at is null or v_due_at > v_now then
        -- Firing waits for other admissions, so it must hold nothing that recovery has looked at.
        if
            exists (
                select
                from counterfoil.attempts as a
                where a.release_lane = v_lane and a.lease_expires_at > '-infinity' and a.lease_expires_at <= v_now
            )
            or exists (
                select
                from counterfoil.runs as e
                where e.release_lane = v_lane and e.ended_at is null and e.deadline_at <= v_now
            )
            or exists (
                select
                from counterfoil.runs as c
                where c.release_lane = v_lane and c.ended_at is null and c.cancel_deadline_at <= v_now
            )
        then
            select count(*) into v_done from counterfoil.recover_due(p_limit, v_lane) as r;
        else
            select count(*) into v_done from counterfoil.fire_due_schedules(p_limit) as f;
        end if;
        if v_done > 0 then
            v_due_at := counterfoil.due_at(p_plays, v_lane);
        end if;
    end if;

    if exists (select from counterfoil.workers as w where w.worker = p_worker and w.last_seen_at < v_now - interval '30 seconds') then
        update counterfoil.workers as w set last_seen_at = v_now where w.worker = p_worker;
    end if;
    if
        exists (
            select
            from counterfoil.listeners as l
            where l.listener = p_listener and l.queue = 'attempts'
                and l.asleep_until < v_now + interval '40 seconds'
        )
    then
        update counterfoil.listeners as l
        set asleep_until = v_now + interval '60 seconds'
        where l.listener = p_listener and l.queue = 'attempts';
    end if;

    return least(
        v_due_at,
        (select s.look_at from counterfoil.schedules as s where s.look_at > v_now order by s.look_at limit 1)
    );
end
$function$;

comment on function counterfoil.look_for_work(text, text[], text, integer, text) is
'What a worker without work asks once per poll: when there will be something to do (in the past: now; null: not known). Recovers runs, or fires schedules, while nothing can be claimed.';

revoke all on function counterfoil.look_for_work(text, text[], text, integer, text) from public;
