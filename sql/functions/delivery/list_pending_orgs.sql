-- list_pending_orgs: the orgs that have pending facts, for a dispatcher that gives each its turn.
--
-- Promises: each once, in one order. One index probe an org, however much it has pending.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.list_pending_orgs()
returns table (org_id text)
language plpgsql
stable
parallel safe
called on null input
security definer
set search_path = pg_catalog, pg_temp
as $function$
begin
    return query select o.org_id from counterfoil.pending_orgs() as o (org_id);
end
$function$;

comment on function counterfoil.list_pending_orgs() is
'Orgs with pending facts, each once: a busy dispatcher gives each of them its turn.';

revoke all on function counterfoil.list_pending_orgs() from public;
