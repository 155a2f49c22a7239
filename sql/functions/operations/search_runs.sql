-- search_runs: looks through an org's runs, the latest first, page by page.
--
-- Promises: rows of kind run, at most p_limit, and a last one, more or end, as search_journal() has: a page may be short and
--           end with more, since one call looks at no more than 5,000 runs. p_query and p_error are text, whatever the case:
--           p_query somewhere in run id, play, error or result summary; p_error in the error alone. Runs that have no error
--           are not looked at when p_error is given or p_status is failed. created_at from p_since up to, not including,
--           p_until.
-- Locks:    nothing.
-- Raises:   RL001 malformed arguments.
-- Since:    1

create or replace function counterfoil.search_runs(
    p_org_id text,
    p_status text default null,
    p_play_name text default null,
    p_query text default null,
    p_error text default null,
    p_since timestamptz default null,
    p_until timestamptz default null,
    p_before jsonb default null,
    p_limit integer default 50
)
returns table (kind text, run_id text, created_at timestamptz, status text, run jsonb, cursor jsonb)
language plpgsql
stable
parallel safe
called on null input
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set jit = off
as $function$
declare
    v_most integer := 5000;
    v_since timestamptz := coalesce(p_since, '-infinity');
    v_at timestamptz := coalesce(p_until, 'infinity');
    v_run_id text := '';
    v_text text := counterfoil.fold_text(btrim(coalesce(p_query, '')));
    v_error text := counterfoil.fold_text(btrim(coalesce(p_error, '')));
    v_found counterfoil.runs[];
    v_scan record;
begin
    perform counterfoil.check_id(p_org_id, 'p_org_id');
    perform counterfoil.check_limit(p_limit, 1, 1000, 'p_limit');
    if p_status is not null and p_status not in ('queued', 'running', 'waiting', 'completed', 'failed', 'cancelled') then
        perform counterfoil.raise_invalid_argument(
            'p_status is no status.', 'p_status',
            'A run is queued, running, waiting, completed, failed or cancelled; leave p_status out for any.'
        );
    end if;
    if p_before is not null then
        if coalesce(
            counterfoil.event_time(p_before -> 'at') is null or jsonb_typeof(p_before -> 'runId') <> 'string', true
        ) then
            perform counterfoil.raise_invalid_argument(
                'p_before is no cursor.', 'p_before', 'Give the cursor of a row of the page before; null for the first page.'
            );
        end if;
        if counterfoil.event_time(p_before -> 'at') < v_at then
            v_at := counterfoil.event_time(p_before -> 'at');
            v_run_id := p_before ->> 'runId';
        end if;
    end if;

    if p_status = 'failed' or v_error <> '' then
        select
            coalesce(array_agg(s.found order by s.nth) filter (where s.matches), '{}') as entries,
            (array_agg(s.found) filter (where s.nth = v_most))[1] as looked_to
        into v_scan
        from (
            select n.found, n.nth, n.matches
            from (
                select
                    o.found,
                    row_number() over () as nth,
                    ((o.found).status = p_status or p_status is null)
                    and ((o.found).play_name = p_play_name or p_play_name is null)
                    and strpos(
                        counterfoil.fold_text(
                            concat_ws(E'\n', (o.found).error ->> 'message', (o.found).error::text) collate "default"
                        ),
                        v_error
                    ) > 0
                    and (v_text = '' or counterfoil.run_holds(o.found, v_text)) as matches
                from (
                    select r as found
                    from counterfoil.runs as r
                    where r.org_id = p_org_id and r.error is not null and r.created_at >= v_since
                        and (r.created_at, r.run_id) < (v_at, v_run_id)
                    order by r.created_at desc, r.run_id desc
                    limit v_most
                ) as o
            ) as n
            where n.matches or n.nth = v_most
            limit p_limit
        ) as s;
    else
        select
            coalesce(array_agg(s.found order by s.nth) filter (where s.matches), '{}') as entries,
            (array_agg(s.found) filter (where s.nth = v_most))[1] as looked_to
        into v_scan
        from (
            select n.found, n.nth, n.matches
            from (
                select
                    o.found,
                    row_number() over () as nth,
                    ((o.found).status = p_status or p_status is null)
                    and ((o.found).play_name = p_play_name or p_play_name is null)
                    and (v_text = '' or counterfoil.run_holds(o.found, v_text)) as matches
                from (
                    select r as found
                    from counterfoil.runs as r
                    where r.org_id = p_org_id and r.created_at > '-infinity' and r.created_at >= v_since
                        and (r.created_at, r.run_id) < (v_at, v_run_id)
                    order by r.created_at desc, r.run_id desc
                    limit v_most
                ) as o
            ) as n
            where n.matches or n.nth = v_most
            limit p_limit
        ) as s;
    end if;
    v_found := v_scan.entries;

    return query
    select
        'run', f.run_id, f.created_at, f.status, counterfoil.run_document(v_found[f.ordinality::integer]),
        jsonb_build_object('at', counterfoil.iso_time(f.created_at), 'runId', f.run_id)
    from unnest(v_found) with ordinality as f
    order by f.ordinality;

    kind := 'end';
    if cardinality(v_found) = p_limit or (v_scan.looked_to).org_id is not null then
        kind := 'more';
        select jsonb_build_object('at', counterfoil.iso_time(l.created_at), 'runId', l.run_id) into cursor
        from unnest(case when cardinality(v_found) = p_limit then v_found[p_limit :] else array[v_scan.looked_to] end) as l;
    end if;
    return next;
end
$function$;

comment on function counterfoil.search_runs(
    text, text, text, text, text, timestamptz, timestamptz, jsonb, integer
) is
'Runs of an org that match, the latest first: status, play, text in run id, play, error or result summary, text in the error, time. Rows of kind run, then one of kind more or end whose cursor goes on as p_before.';

revoke all on function counterfoil.search_runs(
    text, text, text, text, text, timestamptz, timestamptz, jsonb, integer
) from public;
