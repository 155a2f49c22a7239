-- list_org_retention: how long orgs keep things that have a retention of their own.
--
-- Promises: one row for each value that set_org_retention() set, by org and name: those of p_org_id, or of all orgs behind
--           (p_after_org_id, p_after_name), which are those of the last row of the page before; at most p_limit.
-- Locks:    nothing.
-- Raises:   RL001 p_limit out of range.
-- Since:    1

create or replace function counterfoil.list_org_retention(
    p_org_id text default null,
    p_after_org_id text default null,
    p_after_name text default null,
    p_limit integer default 1000
)
returns table (org_id text, name text, seconds bigint, changed_at timestamptz, changed_by text)
language plpgsql
stable
parallel safe
called on null input
security definer
set search_path = pg_catalog, pg_temp
as $function$
begin
    perform counterfoil.check_limit(p_limit, 1, 10000, 'p_limit');
    if p_org_id is not null then
        return query
        select o.org_id, o.name, o.seconds, o.changed_at, o.changed_by
        from counterfoil.org_retention as o
        where o.org_id = p_org_id
        order by o.name
        limit p_limit;
    else
        return query
        select o.org_id, o.name, o.seconds, o.changed_at, o.changed_by
        from counterfoil.org_retention as o
        where (o.org_id, o.name) > (coalesce(p_after_org_id, ''), coalesce(p_after_name, ''))
        order by o.org_id, o.name
        limit p_limit;
    end if;
end
$function$;

comment on function counterfoil.list_org_retention(text, text, text, integer) is
'Retention that orgs have of their own, in seconds: of p_org_id, or of all orgs behind the last row of the page before.';

revoke all on function counterfoil.list_org_retention(text, text, text, integer) from public;
