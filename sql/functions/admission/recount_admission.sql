-- recount_admission: brings the counters of admission in line with the runs, after limits changed.
--
-- Promises: exact numbers of queued and active runs where limits apply by now, for one org, for all orgs (scope default) or
--           for the installation, and no counters where none apply. Exact because nobody is at work meanwhile: whoever
--           counts holds the limits first (hold_limits), to the end of the transaction, and who has read older ones than
--           these fails there. It reads the
--           runs of the org, ended ones too; for all orgs and the installation all runs there are.
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
as $function$
declare
    v_minute timestamptz;
    v_keys record;
begin
    lock table counterfoil.admission_limits in access exclusive mode;
    v_minute := date_trunc('minute', clock_timestamp(), 'UTC');

    delete from counterfoil.admission_counters as c
    where case p_scope when 'default' then c.org_id <> '' else c.org_id = p_org_id end;

    insert into counterfoil.admission_counters (org_id, shard, queued, active, window_start, window_launches)
    select
        n.org_id, s.shard, counterfoil.counter_share(n.queued, s.shard), counterfoil.counter_share(n.active, s.shard),
        v_minute, counterfoil.counter_share(n.launches, s.shard)
    from (
        select
            case when p_scope = 'installation' then '' else r.org_id end as org_id,
            count(*) filter (where r.status = 'queued') as queued,
            count(*) filter (where r.status = 'running') as active,
            count(*) filter (where r.created_at >= v_minute) as launches
        from (
            -- One of the two is read: an org's limits need its own runs alone.
            select o.org_id, o.status, o.created_at, o.ended_at
            from counterfoil.runs as o
            where p_scope = 'org' and o.org_id = p_org_id
            union all
            select a.org_id, a.status, a.created_at, a.ended_at
            from counterfoil.runs as a
            where p_scope <> 'org'
        ) as r
        where r.ended_at is null or r.created_at >= v_minute
        group by case when p_scope = 'installation' then '' else r.org_id end
    ) as n
    cross join lateral counterfoil.admission_rules(n.org_id) as l
    cross join generate_series(0, 15) as s (shard)
    where case when n.org_id = '' then l.all_counted else l.org_counted end;

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
