-- reserve_places: counts launches in, unless that would go over a limit.
--
-- Promises: full_limit null and p_count more queued runs and launches of this minute; or the name of the limit that has no
--           room, nothing changed, and retry_ms, after which another try has a chance. For launchesPerMinute that is the
--           end of the clock minute, or a minute where p_count alone is over it; for maxQueued the estimate of
--           place_retry_ms; where both are full, the later. Exact whatever happens at once: each of the
--           sixteen rows may hold its share of the limit and no more, so the sum cannot go over. An admission takes one row
--           that has room and that nobody holds, and waits for nobody; where there is none, all rows in order, and levels
--           them, so that the last place is found wherever it is.
-- Locks:    rows of admission_counters of p_org_id (empty: the installation's): one, or all in order of their number.
-- Raises:   RL006 when room was lost between looking and locking, which takes a hundred admissions at once.
-- Since:    1
-- allows: exception-block: near a limit alone, where a row that was locked for nothing must be let go before others are waited for

create or replace function counterfoil.reserve_places(
    p_org_id text,
    p_count bigint,
    p_max_queued bigint,
    p_launches_per_minute bigint,
    out full_limit text,
    out retry_ms integer
)
returns record
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
    -- One admission too many between looking and locking must not be likely.
    v_margin bigint := 100 + 20 * p_count;
    v_now timestamptz := clock_timestamp();
    v_minute timestamptz := date_trunc('minute', v_now, 'UTC');
    -- A clock set back leaves windows that have yet to come; those more than a minute ahead count for nothing.
    v_latest timestamptz := v_minute + interval '1 minute';
    v_own integer := pg_backend_pid() % 16;
    v_queued bigint;
    v_launches bigint;
    v_minute_ms integer;
    v_rows bigint;
    v_candidates smallint[];
begin
    select
        coalesce(sum(c.queued), 0)::bigint,
        coalesce(sum(c.window_launches) filter (where c.window_start between v_minute and v_latest), 0)::bigint,
        count(*),
        array_agg(c.shard order by (c.shard + 16 - v_own) % 16) filter (
            where c.queued + p_count <= coalesce(counterfoil.counter_share(p_max_queued, c.shard), 9223372036854775807)
                and case when c.window_start between v_minute and v_latest then c.window_launches else 0 end + p_count
                <= coalesce(counterfoil.counter_share(p_launches_per_minute, c.shard), 9223372036854775807)
        )
    into v_queued, v_launches, v_rows, v_candidates
    from counterfoil.admission_counters as c
    where c.org_id = p_org_id;

    if v_rows < 16 then
        insert into counterfoil.admission_counters (org_id, shard)
        select p_org_id, s.shard
        from generate_series(0, 15) as s (shard)
        order by s.shard
        on conflict on constraint admission_counters_pkey do nothing;
    elsif
        coalesce(p_max_queued - v_queued >= v_margin, true)
        and coalesce(p_launches_per_minute - v_launches >= v_margin, true)
    then
        if counterfoil.take_counter_row(p_org_id, p_count, p_max_queued, p_launches_per_minute, v_minute, v_candidates) then
            return;
        end if;
    elsif v_candidates is not null then
        begin
            if counterfoil.take_counter_row(p_org_id, p_count, p_max_queued, p_launches_per_minute, v_minute, v_candidates) then
                return;
            end if;
        exception
            when sqlstate 'RL006' then
                -- Others were quicker, and what was locked for nothing is locked no more.
                null;
        end;
    end if;

    -- Whether there is room depends on what others have under way, or no row alone has room for so many.
    perform
    from counterfoil.admission_counters as c
    where c.org_id = p_org_id
    order by c.shard
    for no key update;

    select
        sum(c.queued)::bigint,
        coalesce(sum(c.window_launches) filter (where c.window_start between v_minute and v_latest), 0)::bigint
    into v_queued, v_launches
    from counterfoil.admission_counters as c
    where c.org_id = p_org_id;
    -- Others may have been waited for.
    v_now := clock_timestamp();
    if v_launches + p_count > p_launches_per_minute then
        v_minute_ms := case
            when p_count > p_launches_per_minute then 60000
            else greatest(1, ceil(1000 * extract(epoch from v_minute + interval '1 minute' - v_now)))::integer
        end;
    end if;
    if v_queued + p_count > p_max_queued then
        full_limit := 'maxQueued';
        retry_ms := greatest(counterfoil.place_retry_ms(p_org_id, p_count, v_queued, p_max_queued), v_minute_ms);
        return;
    elsif v_minute_ms is not null then
        full_limit := 'launchesPerMinute';
        retry_ms := v_minute_ms;
        return;
    end if;

    update counterfoil.admission_counters as c
    set
        queued = counterfoil.counter_share(v_queued + p_count, c.shard),
        window_launches = counterfoil.counter_share(v_launches + p_count, c.shard),
        window_start = case when c.window_start between v_minute and v_latest then c.window_start else v_minute end
    where c.org_id = p_org_id;
end
$function$;

comment on function counterfoil.reserve_places(text, bigint, bigint, bigint) is
'Counts p_count launches in under the limits given, exactly, or names the limit that has no room and says when to try again. Empty org: the installation. Private.';

revoke all on function counterfoil.reserve_places(text, bigint, bigint, bigint) from public;
