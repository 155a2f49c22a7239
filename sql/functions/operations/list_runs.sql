-- list_runs: an org's runs, the latest first, page by page.
--
-- Promises: at most p_limit runs that were admitted before (p_before, p_before_run_id), which are created_at and run_id of
--           the last row of the page before; null for the first page. p_status null means any.
-- Locks:    nothing.
-- Raises:   RL001 malformed arguments.
-- Since:    1

create or replace function counterfoil.list_runs(
    p_org_id text,
    p_status text default null,
    p_before timestamptz default null,
    p_before_run_id text default null,
    p_limit integer default 50
)
returns table (run_id text, created_at timestamptz, status text, run jsonb)
language plpgsql
stable
parallel safe
called on null input
security definer
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_before timestamptz := coalesce(p_before, 'infinity');
    v_before_run_id text := coalesce(p_before_run_id, '');
begin
    perform counterfoil.check_id(p_org_id, 'p_org_id');
    perform counterfoil.check_limit(p_limit, 1, 1000, 'p_limit');
    if p_status is not null then
        if p_status not in ('queued', 'running', 'waiting', 'completed', 'failed', 'cancelled') then
            perform counterfoil.raise_invalid_argument(
                'p_status is no status.', 'p_status',
                'A run is queued, running, waiting, completed, failed or cancelled; leave p_status out for any.'
            );
        end if;
        -- The index of recent runs is partial by -infinity, see its definition.
        return query
        select r.run_id, r.created_at, r.status, counterfoil.run_document(r)
        from counterfoil.runs as r
        where
            r.org_id = p_org_id and (r.created_at, r.run_id) < (v_before, v_before_run_id)
            and r.created_at > '-infinity' and r.status = p_status
        order by r.created_at desc, r.run_id desc
        limit p_limit;
    else
        return query
        select r.run_id, r.created_at, r.status, counterfoil.run_document(r)
        from counterfoil.runs as r
        where
            r.org_id = p_org_id and (r.created_at, r.run_id) < (v_before, v_before_run_id)
            and r.created_at > '-infinity'
        order by r.created_at desc, r.run_id desc
        limit p_limit;
    end if;
end
$function$;

comment on function counterfoil.list_runs(text, text, timestamptz, text, integer) is
'Runs of an org, latest first, of one status or any: (run_id, created_at, status, run), p_limit of them (1 to 1000) before the given row.';

revoke all on function counterfoil.list_runs(text, text, timestamptz, text, integer) from public;
