-- health: signs of life of the whole installation, in one document.
--
-- Promises: pending, blocked and oldest age per lane, live and expired leases, attempts, queue and admission use (the
--           installation and the twenty busiest orgs with limits), plays that are queued but that no live worker knows,
--           schedules that are due or were refused, receipts, schema version, what retention has still to do,
--           megabytes of the tables that grow. Bounded: it counts no further than 10,000 rows of a kind
--           ("atLeast": true where it stopped) and reads through indexes.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.health()
returns jsonb
language plpgsql
stable
parallel safe
called on null input
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $function$
declare
    v_now timestamptz := clock_timestamp();
    v_minute timestamptz := date_trunc('minute', v_now, 'UTC');
    v_most bigint := 10000::bigint;
    v_lanes jsonb;
    v_attempts jsonb;
    v_queue jsonb;
    v_admission jsonb;
    v_schedules jsonb;
    v_receipts jsonb;
    v_retention jsonb;
begin
    select jsonb_object_agg(n.lane, jsonb_build_object(
        'pendingRuns', counterfoil.bounded_count(p.runs, v_most),
        'pendingFactsAtMost', p.facts,
        'oldestAgeSeconds', coalesce(greatest(0, round(extract(epoch from v_now - p.oldest), 3)), 0),
        'leases', jsonb_build_object('live', p.live, 'expired', p.expired),
        'frozenReceipts', p.frozen,
        'blockedRuns', counterfoil.bounded_count(b.runs, v_most),
        'oldestBlockedAgeSeconds', coalesce(round(extract(epoch from v_now - b.oldest), 3), 0)
    ))
    into v_lanes
    from (values ('lifecycle'), ('search')) as n (lane)
    cross join lateral (
        select
            count(*) as runs,
            -- Each of the four priorities has its own oldest; the index gives the first rows of each.
            min(f.due_at) as oldest,
            count(*) filter (where f.lease_expires_at > v_now) as live,
            count(*) filter (where f.lease_expires_at <= v_now) as expired,
            count(*) filter (where f.receipt_frozen_at is not null) as frozen,
            coalesce(sum(f.facts), 0) as facts
        from (values (0), (1), (2), (3)) as q (priority)
        cross join lateral (
            select l.due_at, l.lease_expires_at, l.receipt_frozen_at, l.tail_seq - l.head_seq + 1 as facts
            from counterfoil.lanes as l
            where l.lane = n.lane and l.blocked_at is null and l.priority = q.priority
            order by l.due_at
            limit v_most + 1
        ) as f
    ) as p
    cross join lateral (
        select count(*) as runs, min(f.blocked_at) as oldest
        from (
            select l.blocked_at
            from counterfoil.lanes as l
            where l.lane = n.lane and l.blocked_at is not null
            limit v_most + 1
        ) as f
    ) as b;

    select jsonb_build_object(
        'active', counterfoil.bounded_count(count(*), v_most),
        'leases', jsonb_build_object(
            'live', count(*) filter (where f.lease_expires_at > v_now),
            'expired', count(*) filter (where f.lease_expires_at <= v_now)
        )
    )
    into v_attempts
    from (
        select a.lease_expires_at
        from counterfoil.attempts as a
        where a.lease_expires_at > '-infinity'
        limit v_most + 1
    ) as f;

    select jsonb_build_object(
        'ready', counterfoil.bounded_count(r.runs, v_most),
        'oldestReadyAgeSeconds', coalesce(greatest(0, round(extract(epoch from v_now - r.oldest), 3)), 0),
        'sleeping', counterfoil.bounded_count(s.runs, v_most),
        'held', counterfoil.bounded_count(h.runs, v_most),
        'unknownPlays', counterfoil.unknown_plays(v_now)
    )
    into v_queue
    from (
        select count(*) as runs, min(f.ready_at) as oldest
        from (
            select q.ready_at
            from counterfoil.run_queue as q
            where q.state = 'ready'
            limit v_most + 1
        ) as f
    ) as r
    cross join (
        select count(*) as runs
        from (
            select
            from counterfoil.run_queue as q
            where q.state = 'sleeping'
            limit v_most + 1
        ) as f
    ) as s
    cross join (
        select count(*) as runs
        from (
            select
            from counterfoil.run_queue as q
            where q.state = 'held'
            limit v_most + 1
        ) as f
    ) as h;

    -- Counters are kept only where limits apply; without any, queue and attempts above say it all.
    select jsonb_build_object(
        'installation', (
            select jsonb_build_object(
                'queued', coalesce(sum(k.queued), 0),
                'active', coalesce(sum(k.active), 0),
                'launchesThisMinute', coalesce(sum(k.window_launches) filter (where k.window_start >= v_minute), 0),
                'limits', (
                    select counterfoil.limits_document(m)
                    from counterfoil.admission_limits as m
                    where m.org_id = '' and m.scope = 'installation'
                )
            )
            from counterfoil.admission_counters as k
            where k.org_id = ''
        ),
        'orgs', coalesce(jsonb_agg(u.document order by u.place) filter (where u.place <= 20), '[]'::jsonb),
        'atLeast', coalesce(sum(u.shards) > v_most, false)
    )
    into v_admission
    from (
        select
            count(*) as shards,
            row_number() over (order by sum(f.queued + f.active) desc, f.org_id) as place,
            jsonb_build_object(
                'orgId', f.org_id,
                'queued', sum(f.queued),
                'active', sum(f.active),
                'launchesThisMinute', coalesce(sum(f.window_launches) filter (where f.window_start >= v_minute), 0),
                'limits', (
                    select counterfoil.limits_document(m)
                    from counterfoil.admission_limits as m
                    where m.org_id = f.org_id and m.scope = 'org'
                )
            ) as document
        from (
            select k.org_id, k.queued, k.active, k.window_start, k.window_launches
            from counterfoil.admission_counters as k
            where k.org_id > ''
            order by k.org_id, k.shard
            limit v_most + 1
        ) as f
        group by f.org_id
    ) as u;

    select jsonb_build_object(
        'due', counterfoil.bounded_count(d.schedules, v_most),
        'oldestDueAgeSeconds', coalesce(round(extract(epoch from v_now - d.oldest), 3), 0),
        'refused', counterfoil.bounded_count(r.schedules, v_most)
    )
    into v_schedules
    from (
        select count(*) as schedules, min(f.look_at) as oldest
        from (
            select s.look_at
            from counterfoil.schedules as s
            where s.look_at <= v_now
            order by s.look_at
            limit v_most + 1
        ) as f
    ) as d
    cross join (
        select count(*) as schedules
        from (
            select
            from counterfoil.schedules as s
            where s.last_outcome = 'refused'
            limit v_most + 1
        ) as f
    ) as r;

    select jsonb_build_object(
        'reads', coalesce(sum(f.reads), 0),
        'readHits', coalesce(sum(f.read_hits), 0),
        'claims', coalesce(sum(f.claims), 0),
        'claimsGranted', coalesce(sum(f.claims_granted), 0),
        'claimsMemoised', coalesce(sum(f.claims_memoised), 0),
        'claimsForced', coalesce(sum(f.claims_forced), 0),
        'atLeast', count(*) > v_most
    )
    into v_receipts
    from (
        select k.reads, k.read_hits, k.claims, k.claims_granted, k.claims_memoised, k.claims_forced
        from counterfoil.receipt_counters as k
        limit v_most + 1
    ) as f;

    -- As far as the next batches look: retention goes from org to org.
    select jsonb_object_agg(b.kind, jsonb_build_object(
        'count', least(c.due, v_most), 'atLeast', c.due > v_most or b.looked_to <> ''
    ))
    into v_retention
    from (
        select t.kind, r.org_ids, r.befores, r.looked_to
        from counterfoil.retention_turns as t
        cross join lateral counterfoil.begin_retention(t.kind, 500, v_now) as r
        offset 0
    ) as b
    cross join lateral (
        select count(*) as due
        from (
            select
            from (
                select
                from unnest(b.org_ids, b.befores) as o (org_id, before)
                cross join lateral (
                    select
                    from counterfoil.deliveries as d
                    where b.kind = 'logs' and d.org_id = o.org_id and d.logs_purged_at is null and d.delivered_at < o.before
                    limit v_most + 1
                ) as f
                union all
                select
                from unnest(b.org_ids, b.befores) as o (org_id, before)
                cross join lateral (
                    select
                    from counterfoil.deliveries as d
                    where b.kind = 'facts' and d.org_id = o.org_id and d.delivered_at > '-infinity' and d.delivered_at < o.before
                    limit v_most + 1
                ) as f
                union all
                select
                from unnest(b.org_ids, b.befores) as o (org_id, before)
                cross join lateral (
                    select
                    from counterfoil.run_journal as j
                    where b.kind = 'journal' and j.org_id = o.org_id and j.recorded_at > '-infinity' and j.recorded_at < o.before
                    limit v_most + 1
                ) as f
                union all
                select
                from unnest(b.org_ids, b.befores) as o (org_id, before)
                cross join lateral (
                    select
                    from counterfoil.ledgers as g
                    where b.kind = 'ledgers' and g.org_id = o.org_id and g.ended_at is not null and g.ended_at < o.before
                    limit v_most + 1
                ) as f
                union all
                select
                from unnest(b.org_ids, b.befores) as o (org_id, before)
                cross join lateral (
                    select
                    from counterfoil.runs as r
                    where b.kind = 'runs' and r.org_id = o.org_id and r.ended_at is not null and r.ended_at < o.before
                    limit v_most + 1
                ) as f
                union all
                select
                from unnest(b.org_ids, b.befores) as o (org_id, before)
                cross join lateral (
                    select
                    from counterfoil.step_receipts as r
                    where b.kind = 'receipts' and r.org_id = o.org_id and r.settled_at is not null and r.settled_at < o.before
                    limit v_most + 1
                ) as f
                union all
                select
                from unnest(b.org_ids, b.befores) as o (org_id, before)
                cross join lateral (
                    select
                    from counterfoil.observations as v
                    where b.kind = 'observations' and v.org_id = o.org_id and v.updated_at > '-infinity' and v.updated_at < o.before
                    limit v_most + 1
                ) as f
            ) as a
            limit v_most + 1
        ) as l
    ) as c;

    return jsonb_build_object(
        'schemaVersion', (
            select max(m.version)
            from counterfoil.schema_migrations as m
        ),
        'at', counterfoil.iso_time(v_now),
        'lanes', v_lanes,
        'attempts', v_attempts,
        'queue', v_queue,
        'admission', v_admission,
        'workers', (
            select count(*)
            from counterfoil.workers as w
            where w.last_seen_at > v_now - interval '5 minutes'
        ),
        'listeners', (
            select count(*)
            from counterfoil.listeners as l
            where l.asleep_until > v_now
        ),
        'schedules', v_schedules,
        'receipts', v_receipts,
        'retentionBacklog', v_retention,
        'disk', counterfoil.disk_use()
    );
end
$function$;

comment on function counterfoil.health() is
'Signs of life as one JSON document: lanes, leases, attempts, queue with plays that no live worker knows, admission use, schedules due or refused, receipts, retention backlog, disk, schema version.';

revoke all on function counterfoil.health() from public;
