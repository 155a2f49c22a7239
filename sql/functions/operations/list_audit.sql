-- list_audit: what operators did, the latest first, page by page.
--
-- Promises: at most p_limit lines of an org (null or empty: of the installation as a whole) before (p_before, p_before_id), which are
--           recorded_at and audit_id of the last line of the page before; null for the first page.
-- Locks:    nothing.
-- Raises:   RL001 p_limit out of range.
-- Since:    1

create or replace function counterfoil.list_audit(
    p_org_id text default null,
    p_before timestamptz default null,
    p_before_id uuid default null,
    p_limit integer default 50
)
returns table (
    audit_id uuid,
    recorded_at timestamptz,
    actor text,
    action text,
    target jsonb,
    reason text,
    details jsonb
)
language plpgsql
stable
parallel safe
called on null input
security definer
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_before timestamptz := coalesce(p_before, 'infinity');
    v_before_id uuid := coalesce(p_before_id, '00000000-0000-0000-0000-000000000000');
begin
    perform counterfoil.check_limit(p_limit, 1, 1000, 'p_limit');

    return query
    select u.audit_id, u.recorded_at, u.actor, u.action, u.target, u.reason, u.details
    from counterfoil.operator_audit as u
    where u.org_id = coalesce(p_org_id, '') and (u.recorded_at, u.audit_id) < (v_before, v_before_id)
    order by u.recorded_at desc, u.audit_id desc
    limit p_limit;
end
$function$;

comment on function counterfoil.list_audit(text, timestamptz, uuid, integer) is
'The audit trail of an org, or of the installation, latest first, p_limit lines before the given one.';

revoke all on function counterfoil.list_audit(text, timestamptz, uuid, integer) from public;
