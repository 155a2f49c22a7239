-- scan_run_journal: a run's entries by their position, those that match.
--
-- Promises: as scan_journal(): at most p_cap looked at, at most p_limit found. Forwards after (p_position, p_channel), and
--           not as far as p_before_position; or backwards before it.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.scan_run_journal(
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
    p_cap integer,
    p_limit integer
)
returns table (entries counterfoil.run_journal[], looked_to counterfoil.run_journal)
language plpgsql
stable
parallel safe
called on null input
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set jit = off
as $function$
begin
    if p_forwards then
        return query
        select
            coalesce(array_agg(s.entry order by s.nth) filter (where s.matches), '{}'),
            (array_agg(s.entry) filter (where s.nth = p_cap))[1]
        from (
            select n.entry, n.nth, n.matches
            from (
                select
                    o.entry,
                    row_number() over () as nth,
                    (o.entry).terms @> p_terms and counterfoil.line_holds((o.entry).line, p_needles)
                    and (o.entry).occurred_at >= p_since and (o.entry).occurred_at < p_until as matches
                from (
                    select j as entry
                    from counterfoil.run_journal as j
                    where j.org_id = p_org_id and j.run_id = p_run_id
                        and (j.position, j.channel) > (p_position, p_channel) and j.position < p_before_position
                    order by j.position, j.channel
                    limit p_cap
                ) as o
            ) as n
            where n.matches or n.nth = p_cap
            limit p_limit
        ) as s;
    else
        return query
        select
            coalesce(array_agg(s.entry order by s.nth) filter (where s.matches), '{}'),
            (array_agg(s.entry) filter (where s.nth = p_cap))[1]
        from (
            select n.entry, n.nth, n.matches
            from (
                select
                    o.entry,
                    row_number() over () as nth,
                    (o.entry).terms @> p_terms and counterfoil.line_holds((o.entry).line, p_needles)
                    and (o.entry).occurred_at >= p_since and (o.entry).occurred_at < p_until as matches
                from (
                    select j as entry
                    from counterfoil.run_journal as j
                    where j.org_id = p_org_id and j.run_id = p_run_id
                        and (j.position, j.channel) < (p_position, p_channel)
                    order by j.position desc, j.channel desc
                    limit p_cap
                ) as o
            ) as n
            where n.matches or n.nth = p_cap
            limit p_limit
        ) as s;
    end if;
end
$function$;

comment on function counterfoil.scan_run_journal(
    text, text, bigint[], text[], timestamptz, timestamptz, bigint, text, boolean, bigint, integer, integer
) is
'Matching entries of a run among the p_cap after or before a position, and how far it looked. Private.';

revoke all on function counterfoil.scan_run_journal(
    text, text, bigint[], text[], timestamptz, timestamptz, bigint, text, boolean, bigint, integer, integer
) from public;
