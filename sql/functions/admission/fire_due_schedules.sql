-- fire_due_schedules: launches what schedules demand.
--
-- Promises: looks at up to p_limit schedules that are due, the longest due first, and answers one row a firing: admitted,
--           skipped, buffered, missed, or refused. Any number of workers may call it at once: each firing is decided once,
--           under the schedule's lock and in the transaction that admits its run. A launch that is refused holds up no other,
--           and its schedule says why. Where limits have room for each but not for all at once, the first of each org fires,
--           or as many of these as there is room for, the longest due first; the rest with the next calls.
-- Locks:    schedules, skipping what is locked; then what admit() locks.
-- Raises:   RL001.
-- Since:    1
--
-- allows: exception-block: a schedule whose launch is refused must not keep back the others, and this is no hot path

create or replace function counterfoil.fire_due_schedules(p_limit integer)
returns table (org_id text, name text, fire_at timestamptz, outcome text, run_id text)
language plpgsql
volatile
parallel unsafe
called on null input
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $function$
declare
    v_now timestamptz := clock_timestamp();
    v_org_ids text[];
    v_names text[];
    v_state text;
    v_message text;
    v_detail text;
    v_good integer[] := array[]::integer[];
    v_firsts integer[];
begin
    perform counterfoil.check_limit(p_limit, 1, 1000, 'p_limit');
    select array_agg(d.org_id), array_agg(d.name) into v_org_ids, v_names
    from (
        select s.org_id, s.name
        from counterfoil.schedules as s
        where s.look_at <= v_now
        order by s.look_at
        limit p_limit
        for no key update skip locked
    ) as d;
    if v_names is null then
        return;
    end if;

    begin
        return query
        select f.org_id, f.name, f.fire_at, f.outcome, f.run_id
        from counterfoil.fire_schedules(v_org_ids, v_names, v_now) as f;
        return;
    exception
        when others then
            -- Some of them are to blame: each is tried alone, which leaves nothing, neither runs nor locks.
            null;
    end;
    for v_place in 1..cardinality(v_names) loop
        begin
            perform from counterfoil.fire_schedules(v_org_ids[v_place:v_place], v_names[v_place:v_place], v_now) as f;
            perform counterfoil.raise_capacity('Tried, and to be undone.', 'tried', 1);
        exception
            when others then
                get stacked diagnostics
                    v_state = returned_sqlstate, v_message = message_text, v_detail = pg_exception_detail;
        end;
        if v_state = 'RL006' and v_detail::jsonb ->> 'limit' = 'tried' then
            v_good := v_good || v_place;
        else
            perform counterfoil.refuse_firing(v_org_ids[v_place], v_names[v_place], v_state, v_message, v_detail, v_now);
            return query select v_org_ids[v_place], v_names[v_place], null::timestamptz, 'refused'::text, null::text;
        end if;
    end loop;

    -- The others in one admission again, as locks have to be taken in one order; with fewer of them until there is room.
    while cardinality(v_good) > 0 loop
        begin
            return query
            select f.org_id, f.name, f.fire_at, f.outcome, f.run_id
            from counterfoil.fire_schedules(
                array(select v_org_ids[g.place] from unnest(v_good) with ordinality as g (place, n) order by g.n),
                array(select v_names[g.place] from unnest(v_good) with ordinality as g (place, n) order by g.n), v_now
            ) as f;
            return;
        exception
            when others then
                get stacked diagnostics
                    v_state = returned_sqlstate, v_message = message_text, v_detail = pg_exception_detail;
        end;
        if cardinality(v_good) = 1 then
            -- It had room a moment ago.
            perform counterfoil.refuse_firing(
                v_org_ids[v_good[1]], v_names[v_good[1]], v_state, v_message, v_detail, v_now
            );
            return query select v_org_ids[v_good[1]], v_names[v_good[1]], null::timestamptz, 'refused'::text, null::text;
            return;
        end if;
        v_firsts := array(
            select min(g.place)
            from unnest(v_good) as g (place)
            group by v_org_ids[g.place]
            order by min(g.place)
        );
        v_good := case
            when cardinality(v_firsts) < cardinality(v_good) then v_firsts else v_good[1:cardinality(v_good) / 2]
        end;
    end loop;
end
$function$;

comment on function counterfoil.fire_due_schedules(integer) is
'Fires up to p_limit (1 to 1000) schedules that are due: one row a firing (org_id, name, fire_at, outcome, run_id). Workers call it by themselves.';

revoke all on function counterfoil.fire_due_schedules(integer) from public;
