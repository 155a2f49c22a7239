-- search_one_run: one page of a run's matching entries, by position, in bounded work.
--
-- Promises: as search_org_journal(), within a run: what is rare in it comes from the index of terms, all else from up to
--           20,000 entries one by one.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.search_one_run(
    p_org_id text,
    p_run_id text,
    p_terms bigint[],
    p_needles text[],
    p_since timestamptz,
    p_until timestamptz,
    p_position bigint,
    p_channel text,
    p_forwards boolean,
    p_before_position bigint,
    p_limit integer
)
returns table (entries counterfoil.run_journal[], looked_to jsonb)
language plpgsql
stable
parallel safe
called on null input
security invoker
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_beside integer := 200;
    v_most integer := 20000;
    v_few integer := 1000;
    v_found counterfoil.run_journal[];
    v_scan record;
    v_count bigint;
begin
    select s.entries, s.looked_to into v_scan
    from counterfoil.scan_run_journal(
        p_org_id, p_run_id, p_terms, p_needles, p_since, p_until, p_position, p_channel, p_forwards, p_before_position,
        case when cardinality(p_terms) = 0 then v_most else v_beside end, p_limit
    ) as s;
    v_found := v_scan.entries;
    if cardinality(v_found) = p_limit or (v_scan.looked_to).org_id is null then
        return query select v_found, null::jsonb;
        return;
    end if;

    if cardinality(p_terms) > 0 then
        if cardinality(v_found) <= v_beside / 50 then
            select
                count(*),
                array_agg(
                    f order by
                        case when p_forwards then f.position end, case when p_forwards then f.channel end,
                        f.position desc, f.channel desc
                ) filter (
                    where f.run_id = p_run_id and f.occurred_at >= p_since and f.occurred_at < p_until
                        and case
                            when p_forwards
                                then (f.position, f.channel) > (p_position, p_channel) and f.position < p_before_position
                            else (f.position, f.channel) < (p_position, p_channel)
                        end
                        and counterfoil.line_holds(f.line, p_needles)
                )
            into v_count, v_found
            from counterfoil.find_journal(
                p_org_id, p_terms, array[counterfoil.journal_mark(p_org_id, 'run', p_run_id)], v_few + 1
            ) as f;
            if v_count <= v_few then
                return query select coalesce(v_found[1 : p_limit], '{}'), null::jsonb;
                return;
            end if;
        end if;

        select s.entries, s.looked_to into v_scan
        from counterfoil.scan_run_journal(
            p_org_id, p_run_id, p_terms, p_needles, p_since, p_until, p_position, p_channel, p_forwards, p_before_position,
            v_most, p_limit
        ) as s;
        v_found := v_scan.entries;
    end if;
    return query select v_found, counterfoil.journal_cursor(v_scan.looked_to);
end
$function$;

comment on function counterfoil.search_one_run(
    text, text, bigint[], text[], timestamptz, timestamptz, bigint, text, boolean, bigint, integer
) is
'One page of a run''s matching entries after or before a position, and how far it looked where it stopped early. Private.';

revoke all on function counterfoil.search_one_run(
    text, text, bigint[], text[], timestamptz, timestamptz, bigint, text, boolean, bigint, integer
) from public;
