-- recount_admission: brings the counters of admission in line with the runs, after limits changed.
--
-- Promises: exact numbers of queued and active runs where limits apply by now, for one org, for all orgs (scope default) or
--           for the installation, and no counters where none apply. Exact because nobody is at work meanwhile: whoever
--           counts holds the limits first (hold_limits), to the end of the transaction, and who has read older ones than
--           these fails there. Others wait for it, so it reads, by index, what has not ended or was launched this minute, and
--           of the runs that are kept no more than one an org.
-- Locks:    admission_limits in ACCESS EXCLUSIVE mode: it waits for every transaction that has read the limits, and holds
--           up others until this one ends.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.recount_admission(p_org_id text, p_scope text)
returns void
language plpgsql
volatile
parallel unsafe
strict
security invoker
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
    v_minute timestamptz;
    v_org_ids text[];
    v_keys record;
begin
    lock table counterfoil.admission_limits in access exclusive mode;
    v_minute := date_trunc('minute', clock_timestamp(), 'UTC');

    delete from counterfoil.admission_counters as c
    where case p_scope when 'default' then c.org_id <> '' else c.org_id = p_org_id end;

    if p_scope = 'org' then
        v_org_ids := array[p_org_id];
    else
        -- From org to org by index, whatever they keep.
        with recursive orgs as (
            (select r.org_id from counterfoil.runs as r order by r.org_id limit 1)
            union all
            select (select r.org_id from counterfoil.runs as r where r.org_id > o.org_id order by r.org_id limit 1)
            from orgs as o
            where o.org_id is not null
        )

        select array_agg(o.org_id) into v_org_ids from orgs as o where o.org_id is not null;
    end if;

    insert into counterfoil.admission_counters (org_id, shard, queued, active, window_start, window_launches)
    select
        n.org_id, s.shard, counterfoil.counter_share(n.queued, s.shard), counterfoil.counter_share(n.active, s.shard),
        v_minute, counterfoil.counter_share(n.launches, s.shard)
    from (
        select
            case when p_scope = 'installation' then '' else c.org_id end as org_id,
            sum(c.queued)::bigint as queued, sum(c.active)::bigint as active, sum(c.launches)::bigint as launches
        from (
            -- Made now, though nothing be counted yet, so that no two who launch first wait for each other.
            select p_org_id as org_id, 0 as queued, 0 as active, 0 as launches
            where p_scope <> 'default'
            union all
            select u.org_id, 1, 0, 0
            from (
                select w.org_id, w.run_id
                from unnest(v_org_ids) as o (org_id)
                -- Org by org: without the offset a plan may begin with all orgs' rows.
                cross join lateral (
                    select h.org_id, h.run_id from counterfoil.run_queue as h where h.org_id = o.org_id offset 0
                ) as w
                union
                -- A claim takes a run whose deadline is over out of the queue, and leaves its end to recovery.
                select d.org_id, d.run_id
                from unnest(v_org_ids) as o (org_id)
                cross join lateral (
                    select h.org_id, h.run_id
                    from counterfoil.runs as h
                    where h.org_id = o.org_id and h.terminal_event_id is null and h.deadline_at is not null
                    offset 0
                ) as d
            ) as u
            cross join lateral (
                select
                from counterfoil.runs as h
                where h.org_id = u.org_id and h.run_id = u.run_id and h.status = 'queued'
                limit 1
            ) as r
            union all
            select o.org_id, 0, a.attempts, 0
            from unnest(v_org_ids) as o (org_id)
            cross join lateral (
                select count(*) as attempts from counterfoil.attempts as h where h.org_id = o.org_id and h.status = 'running'
            ) as a
            union all
            select o.org_id, 0, 0, r.runs
            from unnest(v_org_ids) as o (org_id)
            cross join lateral (
                select count(*) as runs
                from counterfoil.runs as h
                where h.org_id = o.org_id and h.created_at >= v_minute and h.created_at > '-infinity'
            ) as r
        ) as c
        group by case when p_scope = 'installation' then '' else c.org_id end
    ) as n
    cross join lateral counterfoil.admission_rules(n.org_id) as l
    cross join generate_series(0, 15) as s (shard)
    where (n.queued + n.active + n.launches > 0 or n.org_id = p_org_id)
        and case when n.org_id = '' then l.all_counted else l.org_counted end;

    -- A higher limit on concurrency keys lets held runs in.
    if p_scope <> 'installation' then
        select array_agg(k.org_id order by k.org_id, k.concurrency_key) as org_ids,
            array_agg(k.concurrency_key order by k.org_id, k.concurrency_key) as keys
        into v_keys
        from (
            select c.org_id, c.concurrency_key
            from counterfoil.concurrency_keys as c
            where p_scope = 'default' or c.org_id = p_org_id
            order by c.org_id, c.concurrency_key
            for no key update
        ) as k;
        if counterfoil.promote_held(v_keys.org_ids, v_keys.keys) then
            perform counterfoil.wake('attempts');
        end if;
    end if;
end
$function$;

comment on function counterfoil.recount_admission(text, text) is
'Recounts queued and active runs after the limits of an org, of all orgs (default) or of the installation changed. Private.';

revoke all on function counterfoil.recount_admission(text, text) from public;
