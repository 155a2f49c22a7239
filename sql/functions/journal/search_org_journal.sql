-- search_org_journal: one page of an org's matching entries, the latest first, in bounded work.
--
-- Promises: up to p_limit entries before the place, and looked_to: how far it looked when it stopped early, null when there
--           is nothing further back. First it looks at the 200 entries next to the place: what is common is found there.
--           What is rare is found through the index of terms; what is neither, day by day or hour by hour through the same
--           index. It looks at no more than 20,000 entries one by one, and at no more than 1,000 of any day or hour.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.search_org_journal(
    p_org_id text,
    p_terms bigint[],
    p_needles text[],
    p_since timestamptz,
    p_at timestamptz,
    p_run_id text,
    p_channel text,
    p_position bigint,
    p_limit integer
)
returns table (entries counterfoil.run_journal[], looked_to jsonb)
language plpgsql
stable
parallel safe
called on null input
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $function$
declare
    v_beside integer := 200;
    v_most integer := 20000;
    v_few integer := 1000;
    v_slices integer := 24;
    v_at timestamptz := p_at;
    v_run_id text := p_run_id;
    v_channel text := p_channel;
    v_position bigint := p_position;
    v_newest timestamptz;
    v_unit integer;
    v_nth bigint;
    v_busy_day bigint := -1000000::bigint;
    v_found counterfoil.run_journal[] := array[]::counterfoil.run_journal[];
    v_more counterfoil.run_journal[];
    v_scan record;
    v_count bigint;
begin
    if cardinality(p_terms) > 0 then
        select s.entries, s.looked_to into v_scan
        from counterfoil.scan_journal(
            p_org_id, p_terms, p_needles, p_since, p_at, p_run_id, p_channel, p_position, v_beside, p_limit
        ) as s;
        v_found := v_scan.entries;
        if cardinality(v_found) = p_limit or (v_scan.looked_to).org_id is null then
            return query select v_found, null::jsonb;
            return;
        end if;
    end if;

    -- Common, or nothing that the index knows: one by one.
    if cardinality(p_terms) = 0 or cardinality(v_found) > v_beside / 50 then
        select s.entries, s.looked_to into v_scan
        from counterfoil.scan_journal(
            p_org_id, p_terms, p_needles, p_since, p_at, p_run_id, p_channel, p_position, v_most, p_limit
        ) as s;
        v_found := v_scan.entries;
        return query select v_found, counterfoil.journal_cursor(v_scan.looked_to);
        return;
    end if;

    -- Rare: all of them at once.
    select
        count(*),
        array_agg(f order by f.occurred_at desc, f.run_id desc, f.channel desc, f.position desc) filter (
            where f.occurred_at >= p_since
                and (f.occurred_at, f.run_id, f.channel, f.position) < (p_at, p_run_id, p_channel, p_position)
                and counterfoil.line_holds(f.line, p_needles)
        )
    into v_count, v_found
    from counterfoil.find_journal(p_org_id, p_terms, '{}', v_few + 1) as f;
    if v_count <= v_few then
        return query select coalesce(v_found[1 : p_limit], '{}'), null::jsonb;
        return;
    end if;

    -- Neither: day by day, days without entries skipped, and a day with more than a few hour by hour.
    v_found := array[]::counterfoil.run_journal[];
    for v_turn in 1..v_slices loop
        select n.occurred_at into v_newest
        from counterfoil.run_journal as n
        where n.org_id = p_org_id and n.occurred_at > '-infinity' and n.occurred_at >= p_since
            and (n.occurred_at, n.run_id, n.channel, n.position) < (v_at, v_run_id, v_channel, v_position)
        order by n.occurred_at desc, n.run_id desc, n.channel desc, n.position desc
        limit 1;
        if not found then
            return query select v_found, null::jsonb;
            return;
        end if;

        v_unit := case when floor(extract(epoch from v_newest) / 86400) = v_busy_day then 3600 else 86400 end;
        loop
            v_nth := floor(extract(epoch from v_newest) / v_unit)::bigint;
            select
                count(*),
                array_agg(f order by f.occurred_at desc, f.run_id desc, f.channel desc, f.position desc) filter (
                    where f.occurred_at >= p_since
                        and (f.occurred_at, f.run_id, f.channel, f.position) < (v_at, v_run_id, v_channel, v_position)
                        and counterfoil.line_holds(f.line, p_needles)
                )
            into v_count, v_more
            from counterfoil.find_journal(
                p_org_id, p_terms,
                array[counterfoil.journal_mark(p_org_id, case v_unit when 3600 then 'hour' else 'day' end, v_nth::text)],
                v_few + 1
            ) as f;
            exit when v_count <= v_few or v_unit = 3600;
            v_busy_day := v_nth;
            v_unit := 3600;
        end loop;

        -- So many in an hour that they come thick: one by one.
        if v_count > v_few then
            select s.entries, s.looked_to into v_scan
            from counterfoil.scan_journal(
                p_org_id, p_terms, p_needles, p_since, v_at, v_run_id, v_channel, v_position, v_most,
                p_limit - cardinality(v_found)
            ) as s;
            v_more := v_scan.entries;
            return query select v_found || v_more, counterfoil.journal_cursor(v_scan.looked_to);
            return;
        end if;

        v_found := v_found || coalesce(v_more, '{}');
        if cardinality(v_found) >= p_limit then
            return query select v_found[1 : p_limit], null::jsonb;
            return;
        end if;
        v_at := to_timestamp((v_nth * v_unit)::double precision);
        v_run_id := '';
        v_channel := '';
        v_position := 0;
    end loop;

    return query select v_found, counterfoil.journal_cursor(v_at, v_run_id, v_channel, v_position);
end
$function$;

comment on function counterfoil.search_org_journal(
    text, bigint[], text[], timestamptz, timestamptz, text, text, bigint, integer
) is
'One page of an org''s matching entries before a place, the latest first, and how far it looked where it stopped early. Private.';

revoke all on function counterfoil.search_org_journal(
    text, bigint[], text[], timestamptz, timestamptz, text, text, bigint, integer
) from public;
