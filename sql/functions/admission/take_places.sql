-- take_places: counts new runs in under every limit that applies to them.
--
-- Promises: the installation's places first, then each org's, in order. Where a limit has no room the call fails, unless
--           somebody else has launched some of these very runs while it waited for its turn: repeats need no room, so those
--           are left out, answered in gone, and the rest is tried again.
-- Locks:    the caller holds the limits. admission_counters of the installation, then of each org in order.
-- Raises:   RL006 and RL007.
-- Since:    1

create or replace function counterfoil.take_places(p_org_ids text[], p_run_ids text[], p_ordinals bigint[])
returns bigint[]
language plpgsql
volatile
parallel unsafe
strict
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $function$
declare
    v_org record;
    v_rules record;
    v_full record;
    v_count bigint;
    v_maximum bigint;
    v_gone bigint[] := array[]::bigint[];
    v_found bigint[];
    v_taken text[] := array[]::text[];
    v_message text;
begin
    if not exists (
        select
        from counterfoil.admission_limits as a
        where num_nonnulls(a.max_queued, a.max_active, a.launches_per_minute) > 0
    ) then
        return v_gone;
    end if;

    for v_org in
        select '' as org_id, cardinality(p_ordinals)::bigint as launches
        union all
        (
            select p_org_ids[n.ordinal], count(*)
            from unnest(p_ordinals) as n (ordinal)
            group by p_org_ids[n.ordinal]
            order by p_org_ids[n.ordinal] collate "C"
        )
    loop
        select
            case when v_org.org_id = '' then r.all_counted else r.org_counted end as counted,
            case when v_org.org_id = '' then r.all_max_queued else r.max_queued end as max_queued,
            case when v_org.org_id = '' then r.all_launches_per_minute else r.launches_per_minute end as launches_per_minute
        into strict v_rules
        from counterfoil.admission_rules(v_org.org_id) as r;
        continue when not v_rules.counted;

        v_count := v_org.launches - (
            select count(*) from unnest(v_gone) as g (ordinal) where v_org.org_id in ('', p_org_ids[g.ordinal])
        );
        while v_count > 0 loop
            select p.full_limit, p.retry_ms into strict v_full
            from counterfoil.reserve_places(v_org.org_id, v_count, v_rules.max_queued, v_rules.launches_per_minute) as p;
            exit when v_full.full_limit is null;

            v_found := array(
                select n.ordinal
                from unnest(p_ordinals) as n (ordinal)
                where n.ordinal <> all (v_gone) and exists (
                    select
                    from counterfoil.runs as r
                    where r.org_id = p_org_ids[n.ordinal] and r.run_id = p_run_ids[n.ordinal]
                )
            );
            if cardinality(v_found) = 0 then
                v_maximum := case v_full.full_limit
                    when 'maxQueued' then v_rules.max_queued else v_rules.launches_per_minute
                end;
                v_message := format(
                    'The %s has no room for %s more %s under %s, which is %s.',
                    case v_org.org_id when '' then 'installation' else 'org' end, v_count,
                    case v_count when 1 then 'launch' else 'launches' end, v_full.full_limit, v_maximum
                );
                if v_org.org_id = '' then
                    perform counterfoil.raise_capacity(v_message, v_full.full_limit, v_full.retry_ms);
                else
                    perform counterfoil.raise_quota_exceeded(v_message, v_full.full_limit, v_full.retry_ms);
                end if;
            end if;
            v_gone := v_gone || v_found;
            v_count := v_count - (
                select count(*) from unnest(v_found) as f (ordinal) where v_org.org_id in ('', p_org_ids[f.ordinal])
            );
            perform counterfoil.give_places_back(t.org_id, count(*))
            from unnest(v_taken) as t (org_id)
            inner join unnest(v_found) as f (ordinal) on t.org_id in ('', p_org_ids[f.ordinal])
            group by t.org_id;
        end loop;
        v_taken := v_taken || v_org.org_id;
    end loop;
    return v_gone;
end
$function$;

comment on function counterfoil.take_places(text[], text[], bigint[]) is
'Counts the new runs with the given ordinals in under all limits, and answers the ordinals of those that somebody else has launched meanwhile. Private.';

revoke all on function counterfoil.take_places(text[], text[], bigint[]) from public;
