-- org_retention_before: the time before which an org keeps nothing of a kind any more.
--
-- Promises: p_now less the org's own retention, or the installation's where it has none.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.org_retention_before(p_org_id text, p_name text, p_now timestamptz)
returns timestamptz
language plpgsql
stable
parallel safe
strict
security invoker
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_seconds bigint;
begin
    select o.seconds into v_seconds
    from counterfoil.org_retention as o
    where o.org_id = p_org_id and o.name = p_name;
    return p_now - make_interval(secs => coalesce(v_seconds, counterfoil.setting_integer(p_name)));
end
$function$;

comment on function counterfoil.org_retention_before(text, text, timestamptz) is
'p_now less the retention p_name of an org: its own, or the setting of that name. Private.';

revoke all on function counterfoil.org_retention_before(text, text, timestamptz) from public;
