-- claim_attempts: gives a worker runs to execute.
--
-- Promises: up to p_limit attempts, never over claim_batch_max, under a lease, each run once, to nobody else. Orgs take
--           turns, one run an org and turn, beginning after the org that this worker, or before its first claim the
--           latest of the others, was served last; within an org by priority, then age. Orgs that have no room under
--           max_active are passed over, about a hundred a claim. The first claim of a run writes run.started; a claim
--           after a public wait continues the same attempt, writes run.resumed and says in `resumed` what ended the
--           wait. The cost is that of what is claimed and of the number of plays, never of what waits: orgs are found by
--           jumps along the index of ready runs. A run whose deadline is over does not begin: it leaves the queue, some
--           twenty a claim, and recovery ends it.
-- Locks:    rows of admission_counters where limits apply, queue rows, runs, all skipping what is locked; then attempts
--           and lanes of the runs it holds. It waits for no other claim.
-- Raises:   RL001.
-- Since:    1

create or replace function counterfoil.claim_attempts(
    p_worker text, p_limit integer, p_lease_seconds integer, p_plays text[], p_release_lane text
)
returns table (
    org_id text,
    run_id text,
    attempt integer,
    lease_id text,
    lease_expires_at timestamptz,
    play_name text,
    launch jsonb,
    context jsonb,
    resumed jsonb
)
language plpgsql
volatile
parallel unsafe
called on null input
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_material = off
set jit = off
as $function$
declare
    v_lane text := coalesce(p_release_lane, 'default');
    v_plays text[] := p_plays;
    v_now timestamptz;
    v_seen record;
    v_start text;
    v_cursor text;
    v_orgs text[];
    v_found integer;
    v_passed integer := 0;
    v_last text;
    v_turn text[];
    v_caps bigint[];
    v_limit integer := least(p_limit, counterfoil.setting_integer('claim_batch_max'))::integer;
    v_left bigint := v_limit::bigint;
    v_counting boolean;
    v_all_counted boolean := false;
    v_shard smallint;
    v_rules record;
    v_org_ids text[] := array[]::text[];
    v_run_ids text[] := array[]::text[];
    v_picked_org_ids text[];
    v_picked_run_ids text[];
    v_late_org_ids text[];
    v_late integer := 0;
begin
    perform counterfoil.check_id(p_worker, 'p_worker');
    perform counterfoil.check_limit(p_limit, 1, 2147483647, 'p_limit');
    perform counterfoil.check_id(v_lane, 'p_release_lane');
    if cardinality(v_plays) > 0 then
        perform counterfoil.check_id(p.play_name, format('p_plays[%s]', p.ordinal))
        from unnest(v_plays) with ordinality as p (play_name, ordinal);
        v_plays := array(select distinct p.play_name from unnest(v_plays) as p (play_name));
    else
        v_plays := counterfoil.queued_plays(v_lane);
    end if;

    -- Limits are read before any row is locked: whoever changes them keeps readers out and then wants rows.
    perform counterfoil.hold_limits();
    v_counting := exists (
        select
        from counterfoil.admission_limits as a
        where num_nonnulls(a.max_queued, a.max_active, a.launches_per_minute) > 0
    );
    perform counterfoil.wake_sleepers(v_lane, v_plays, greatest(v_limit, 100));

    select w.claim_cursor, w.last_seen_at into v_seen from counterfoil.workers as w where w.worker = p_worker;
    v_start := v_seen.claim_cursor;
    if v_start is null then
        -- A new worker goes on where the last one was: many that claim but once must not all begin with the same org.
        select coalesce(max(f.claim_cursor), '') into v_start
        from (
            select w.claim_cursor
            from counterfoil.workers as w
            where w.claim_cursor is not null
            order by w.last_seen_at desc
            limit 1
        ) as f;
    end if;
    v_cursor := v_start;
    v_orgs := counterfoil.next_ready_orgs(v_lane, v_plays, v_start, v_limit);
    v_found := cardinality(v_orgs);
    v_last := v_orgs[v_found];

    -- The installation's room first, then org by org, then runs: the one order of locks.
    if v_counting and cardinality(v_orgs) > 0 then
        select r.all_counted, r.all_max_active into strict v_rules from counterfoil.admission_rules('') as r;
        v_all_counted := v_rules.all_counted;
        if v_all_counted then
            v_left := counterfoil.take_active_places('', v_left, v_rules.all_max_active);
        end if;
    end if;

    while v_left > 0 and v_late < 20 loop
        if cardinality(v_orgs) = 0 then
            -- Orgs that have no room, or whose runs others hold, must not keep the turn from those behind them.
            exit when v_found < v_limit or v_passed >= 100;
            v_orgs := counterfoil.next_ready_orgs(v_lane, v_plays, v_last, v_limit);
            v_found := cardinality(v_orgs);
            v_passed := v_passed + v_found;
            v_orgs := array(
                select o.org_id
                from unnest(v_orgs) with ordinality as o (org_id, place)
                -- Once round the ring is enough.
                where (o.org_id <= v_start collate "C", o.org_id collate "C") > (v_last <= v_start collate "C", v_last)
                order by o.place
            );
            exit when cardinality(v_orgs) = 0;
            v_last := v_orgs[cardinality(v_orgs)];
        end if;

        -- One run for each org; more only where all have had their turn and there is room for as many again.
        v_turn := v_orgs[1:v_left::integer];
        v_caps := array_fill(greatest(v_left / cardinality(v_orgs), 1), array[cardinality(v_turn)]);
        if v_counting then
            v_caps := counterfoil.limit_claims(v_turn, v_caps);
        end if;

        select g.org_ids, g.run_ids, g.late_org_ids into strict v_picked_org_ids, v_picked_run_ids, v_late_org_ids
        from counterfoil.take_ready_runs(v_lane, v_plays, v_turn, v_caps) as g;
        if v_counting then
            perform counterfoil.return_claims(v_turn, v_caps, v_picked_org_ids, v_picked_run_ids);
        end if;

        v_org_ids := v_org_ids || v_picked_org_ids;
        v_run_ids := v_run_ids || v_picked_run_ids;
        v_left := v_left - cardinality(v_picked_run_ids);
        v_late := v_late + cardinality(v_late_org_ids);
        if cardinality(v_picked_org_ids) > 0 then
            v_cursor := v_picked_org_ids[cardinality(v_picked_org_ids)];
        elsif cardinality(v_late_org_ids) > 0 then
            v_cursor := v_late_org_ids[cardinality(v_late_org_ids)];
        end if;
        -- Next come those who have not had this turn, then those who had something; who had nothing has no more.
        v_orgs := v_orgs[cardinality(v_turn) + 1:] || array(
            select o.org_id
            from unnest(v_turn) with ordinality as o (org_id, place)
            where o.org_id = any (v_picked_org_ids || v_late_org_ids)
            order by o.place
        );
    end loop;

    if v_all_counted and v_left > 0 then
        v_shard := counterfoil.lock_counter('', false);
        update counterfoil.admission_counters as c
        set active = c.active - v_left
        where c.org_id = '' and c.shard = v_shard;
    end if;

    -- So many had no room that the turn goes on behind them next time.
    if v_passed >= 100 and cardinality(v_run_ids) = 0 then
        v_cursor := v_last;
    end if;

    v_now := clock_timestamp();
    if v_cursor <> v_start collate "C" or v_seen.last_seen_at is null or v_seen.last_seen_at < v_now - interval '30 seconds' then
        insert into counterfoil.workers as w (worker, release_lane, plays, claim_cursor, first_seen_at, last_seen_at)
        values (p_worker, v_lane, coalesce(p_plays, '{}'), v_cursor, v_now, v_now)
        on conflict on constraint workers_pkey do update
        set
            release_lane = excluded.release_lane,
            plays = excluded.plays,
            claim_cursor = excluded.claim_cursor,
            last_seen_at = excluded.last_seen_at;
    end if;

    if cardinality(v_run_ids) > 0 then
        return query
        select
            s.org_id, s.run_id, s.attempt, s.lease_id, s.lease_expires_at, s.play_name, s.launch, s.context, s.resumed
        from counterfoil.start_attempts(p_worker, v_org_ids, v_run_ids, counterfoil.clamp_lease(p_lease_seconds)) as s;
    end if;
end
$function$;

comment on function counterfoil.claim_attempts(text, integer, integer, text[], text) is
'Claims up to p_limit runs of the plays (null or empty: any) in a release lane for a worker, fair between orgs, leased for p_lease_seconds (5 to 300). One row an attempt, with its launch, the runner''s context and, after a wait, what ended it.';

revoke all on function counterfoil.claim_attempts(text, integer, integer, text[], text) from public;
