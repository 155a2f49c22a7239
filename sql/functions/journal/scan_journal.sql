-- scan_journal: an org's entries backwards from a place, those that match.
--
-- Promises: looks at no more than p_cap entries, stops as soon as p_limit match. entries are the latest first; looked_to is
--           the last one looked at where the cap ended the search, null where there is nothing further back.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.scan_journal(
    p_org_id text,
    p_terms bigint[],
    p_needles text[],
    p_since timestamptz,
    p_at timestamptz,
    p_run_id text,
    p_channel text,
    p_position bigint,
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
                (o.entry).terms @> p_terms and counterfoil.line_holds((o.entry).line, p_needles) as matches
            from (
                select j as entry
                from counterfoil.run_journal as j
                where j.org_id = p_org_id and j.occurred_at > '-infinity' and j.occurred_at >= p_since
                    and (j.occurred_at, j.run_id, j.channel, j.position) < (p_at, p_run_id, p_channel, p_position)
                order by j.occurred_at desc, j.run_id desc, j.channel desc, j.position desc
                limit p_cap
            ) as o
        ) as n
        where n.matches or n.nth = p_cap
        limit p_limit
    ) as s;
end
$function$;

comment on function counterfoil.scan_journal(text, bigint[], text[], timestamptz, timestamptz, text, text, bigint, integer, integer) is
'Matching entries of an org among the p_cap before a place, the latest first, and how far it looked. Private.';

revoke all on function counterfoil.scan_journal(
    text, bigint[], text[], timestamptz, timestamptz, text, text, bigint, integer, integer
) from public;
