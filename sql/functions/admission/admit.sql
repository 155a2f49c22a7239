-- admit: admits an array of launches, the work behind admit_launch and admit_launches.
--
-- Promises: one row per launch, in the order given. New runs are written with their launch, their place in the queue and
--           run.created, all of them or none. A run that exists with the same identity is replayed and costs nothing;
--           of launches of one run at once, exactly one is admitted. Event ids are random, so that nobody can occupy
--           them; what makes a repeat harmless is the run's own key.
-- Locks:    admission_counters of the installation, then of each org in order, where limits apply; concurrency_keys in
--           order; then the new runs in order of (org, run).
-- Raises:   RL001, RL008 (DETAIL: p_launch.field or p_launches[i].field); RL002 parent_run_not_found; RL003 (DETAIL:
--           the top-level fields that differ); RL006 and RL007 when a limit has no room.
-- Since:    1

create or replace function counterfoil.admit(p_launches jsonb, p_single boolean)
returns table (org_id text, run_id text, outcome text, status text)
language plpgsql
volatile
parallel unsafe
strict
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_material = off
set jit = off
as $function$
declare
    v_max_bytes bigint := counterfoil.setting_integer('launch_max_bytes');
    v_max_attempts bigint := counterfoil.setting_integer('default_max_attempts');
    v_bad record;
    v_where text;
    v_org_ids text[];
    v_run_ids text[];
    v_digests bytea[];
    v_outcomes text[];
    v_statuses text[];
    v_new bigint[];
    v_roots text[];
    v_key_orgs text[];
    v_keys text[];
    v_key_runs bigint[];
    v_gone bigint[];
    v_now timestamptz;
    v_made_org_ids text[];
    v_made_run_ids text[];
    v_is_made boolean[];
    v_made bigint[];
    v_lost bigint[];
    v_ordinal bigint;
    v_launch jsonb;
begin
    -- Validation: the first bad launch is named, and nothing else happens.
    select l.ordinal, f.fault into v_bad
    from jsonb_array_elements(p_launches) with ordinality as l (launch, ordinal)
    cross join lateral counterfoil.launch_fault(l.launch) as f (fault)
    where f.fault is not null
    limit 1;
    if found then
        v_where := counterfoil.launch_path(p_single, v_bad.ordinal, v_bad.fault[1]);
        perform counterfoil.raise_invalid_argument(format('%s %s.', v_where, v_bad.fault[2]), v_where, v_bad.fault[3]);
    end if;

    select l.ordinal, octet_length(l.launch::text) as bytes into v_bad
    from jsonb_array_elements(p_launches) with ordinality as l (launch, ordinal)
    where octet_length(l.launch::text) > v_max_bytes
    limit 1;
    if found then
        v_where := counterfoil.launch_path(p_single, v_bad.ordinal, '');
        perform counterfoil.raise_payload_too_large(
            format('%s has %s bytes; a launch may have %s.', v_where, v_bad.bytes, v_max_bytes), v_where,
            'Keep large input elsewhere and pass a reference, or raise the setting launch_max_bytes.'
        );
    end if;
    perform counterfoil.check_document(l.launch, counterfoil.launch_path(p_single, l.ordinal, ''))
    from jsonb_array_elements(p_launches) with ordinality as l (launch, ordinal)
    -- What is that small nests neither too deep nor holds too long a number.
    where octet_length(l.launch::text) > 400;

    select
        array_agg(l.launch ->> 'orgId' order by l.ordinal),
        array_agg(l.launch ->> 'runId' order by l.ordinal),
        array_agg(counterfoil.canonical_digest(counterfoil.launch_identity(l.launch)) order by l.ordinal)
    into v_org_ids, v_run_ids, v_digests
    from jsonb_array_elements(p_launches) with ordinality as l (launch, ordinal);

    -- The same run twice in one call: the first counts, another must be its repeat.
    if not p_single then
        select d.ordinal, d.first_ordinal, d.digest <> d.first_digest as differs into v_bad
        from (
            select
                g.ordinal, g.digest,
                first_value(g.ordinal) over w as first_ordinal,
                first_value(g.digest) over w as first_digest
            from unnest(v_org_ids, v_run_ids, v_digests) with ordinality as g (org_id, run_id, digest, ordinal)
            window w as (partition by g.org_id, g.run_id order by g.ordinal)
        ) as d
        where d.digest <> d.first_digest
        order by d.ordinal
        limit 1;
        if found then
            perform counterfoil.raise_launch_conflict(
                v_run_ids[v_bad.ordinal], p_launches -> (v_bad.first_ordinal - 1)::integer,
                p_launches -> (v_bad.ordinal - 1)::integer
            );
        end if;
    end if;

    -- Runs that exist already are repeats, or conflicts.
    select array_agg(r.status order by g.ordinal), array_agg(g.ordinal order by g.ordinal) filter (where g.digest <> r.launch_digest)
    into v_statuses, v_lost
    from unnest(v_org_ids, v_run_ids, v_digests) with ordinality as g (org_id, run_id, digest, ordinal)
    -- By key, run by run: a plan made while the table was small would read all of it.
    left join lateral (
        select h.status, h.launch_digest
        from counterfoil.runs as h
        where h.org_id = g.org_id and h.run_id = g.run_id
        limit 1
    ) as r on true;
    if v_lost is not null then
        select l.launch into v_launch
        from counterfoil.launches as l
        where l.org_id = v_org_ids[v_lost[1]] and l.run_id = v_run_ids[v_lost[1]];
        perform counterfoil.raise_launch_conflict(v_run_ids[v_lost[1]], v_launch, p_launches -> (v_lost[1] - 1)::integer);
    end if;

    -- In the order of the tables' own collation, as everybody locks.
    select array_agg(g.ordinal order by g.org_id collate "C", g.run_id collate "C")
    into v_new
    from (
        select distinct on (f.org_id, f.run_id) f.org_id, f.run_id, f.ordinal
        from unnest(v_org_ids, v_run_ids, v_statuses) with ordinality as f (org_id, run_id, status, ordinal)
        where f.status is null
        order by f.org_id, f.run_id, f.ordinal
    ) as g;

    if v_new is not null then
        perform counterfoil.hold_limits();
        -- Places under the limits, before any run: the installation's, then each org's in order.
        v_gone := counterfoil.take_places(v_org_ids, v_run_ids, v_new);
        if cardinality(v_gone) > 0 then
            v_new := array(
                select n.ordinal
                from unnest(v_new) with ordinality as n (ordinal, place)
                where n.ordinal <> all (v_gone)
                order by n.place
            );
        end if;

        -- Parents, and the root of the tree that each new run belongs to.
        v_roots := array(select v_run_ids[n.ordinal] from unnest(v_new) with ordinality as n (ordinal, place) order by n.place);
        if exists (
            select
            from unnest(v_new) as n (ordinal)
            cross join lateral (select p_launches -> (n.ordinal - 1)::integer as launch) as l
            where coalesce(l.launch ->> 'parentRunId', l.launch ->> 'rootRunId') is not null
        ) then
            v_roots := counterfoil.launch_roots(p_launches, v_new, p_single);
        end if;

        -- Concurrency keys: counted in, and held until the transaction ends.
        select array_agg(k.org_id), array_agg(k.key), array_agg(k.runs)
        into v_key_orgs, v_keys, v_key_runs
        from (
            select v_org_ids[n.ordinal] as org_id, l.key, count(*) as runs
            from unnest(v_new) as n (ordinal)
            cross join lateral (select p_launches -> (n.ordinal - 1)::integer ->> 'concurrencyKey' as key) as l
            where l.key is not null
            group by v_org_ids[n.ordinal], l.key
        ) as k;
        if v_keys is not null then
            insert into counterfoil.concurrency_keys as k (org_id, concurrency_key, in_use, unended)
            select g.org_id, g.key, 0, g.runs
            from unnest(v_key_orgs, v_keys, v_key_runs) as g (org_id, key, runs)
            order by g.org_id collate "C", g.key collate "C"
            on conflict on constraint concurrency_keys_pkey do update set unended = k.unended + excluded.unended;
        end if;

        v_now := clock_timestamp();
        with made as (
            insert into counterfoil.runs as r (
                org_id, run_id, status, play_id, play_name, release_lane, priority, concurrency_key, root_run_id,
                parent_run_id, launch_digest, created_at, available_at, deadline_at, attempt_timeout_seconds, max_attempts
            )
            select
                v_org_ids[n.ordinal], v_run_ids[n.ordinal], 'queued', l.launch ->> 'playId', l.launch ->> 'playName',
                coalesce(l.launch ->> 'releaseLane', 'default'), coalesce((l.launch ->> 'priority')::numeric, 5),
                l.launch ->> 'concurrencyKey', n.root, l.launch ->> 'parentRunId', v_digests[n.ordinal], v_now,
                coalesce(counterfoil.read_time(l.launch -> 'availableAt'), v_now),
                counterfoil.read_time(l.launch -> 'deadlineAt'), (l.launch ->> 'attemptTimeoutSeconds')::numeric,
                coalesce((l.launch ->> 'maxAttempts')::numeric, v_max_attempts)
            from unnest(v_new, v_roots) with ordinality as n (ordinal, root, place)
            cross join lateral (select p_launches -> (n.ordinal - 1)::integer as launch) as l
            -- In one order for everybody, so that two overlapping calls cannot lock each other out.
            order by n.place
            on conflict on constraint runs_pkey do nothing
            returning r.org_id, r.run_id
        )

        select array_agg(m.org_id), array_agg(m.run_id) into v_made_org_ids, v_made_run_ids from made as m;

        v_made := v_new;
        if coalesce(cardinality(v_made_run_ids), 0) < cardinality(v_new) then
            -- Somebody else admitted some of these in the meantime, too: what was counted in for them is given back.
            v_is_made := counterfoil.which_were_made(
                array(select v_org_ids[n.ordinal] from unnest(v_new) with ordinality as n (ordinal, place) order by n.place),
                array(select v_run_ids[n.ordinal] from unnest(v_new) with ordinality as n (ordinal, place) order by n.place),
                v_made_org_ids, v_made_run_ids
            );
            select coalesce(array_agg(n.ordinal order by n.place) filter (where n.is_made), '{}'),
                array_agg(n.ordinal order by n.place) filter (where not n.is_made)
            into v_made, v_lost
            from unnest(v_new, v_is_made) with ordinality as n (ordinal, is_made, place);
            perform counterfoil.unadmit_runs(p_launches, v_lost);
        end if;

        foreach v_ordinal in array v_gone || v_lost loop
            select r.status, r.launch_digest, l.launch into strict v_bad
            from counterfoil.runs as r
            inner join counterfoil.launches as l on l.org_id = r.org_id and l.run_id = r.run_id
            where r.org_id = v_org_ids[v_ordinal] and r.run_id = v_run_ids[v_ordinal];
            if v_bad.launch_digest <> v_digests[v_ordinal] then
                perform counterfoil.raise_launch_conflict(
                    v_run_ids[v_ordinal], v_bad.launch, p_launches -> (v_ordinal - 1)::integer
                );
            end if;
            v_statuses[v_ordinal] := v_bad.status;
        end loop;

        perform counterfoil.admit_runs(p_launches, v_made, v_now);
        v_outcomes := array_fill('replayed'::text, array[cardinality(v_run_ids)]);
        foreach v_ordinal in array v_made loop
            v_outcomes[v_ordinal] := 'admitted';
        end loop;
    end if;

    return query
    select g.org_id, g.run_id, coalesce(g.outcome, 'replayed'), coalesce(g.status, 'queued')
    from unnest(v_org_ids, v_run_ids, v_outcomes, v_statuses) with ordinality as g (org_id, run_id, outcome, status, ordinal)
    order by g.ordinal;
end
$function$;

comment on function counterfoil.admit(jsonb, boolean) is
'Admits an array of launches; one row each, in order. p_single says that errors speak of p_launch. Private.';

revoke all on function counterfoil.admit(jsonb, boolean) from public;
