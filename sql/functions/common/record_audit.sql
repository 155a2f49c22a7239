-- record_audit: writes one line of the audit trail.
--
-- Promises: who (session_user), what, on what, why; in the transaction of the action itself.
-- Locks:    nothing but the new row.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.record_audit(
    p_org_id text,
    p_action text,
    p_target jsonb,
    p_reason text,
    p_details jsonb,
    p_now timestamptz
)
returns void
language plpgsql
volatile
parallel unsafe
called on null input
security invoker
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_audit_id uuid := gen_random_uuid();
begin
    insert into counterfoil.operator_audit (org_id, audit_id, recorded_at, actor, action, target, reason, details)
    values (p_org_id, v_audit_id, p_now, session_user, p_action, p_target, p_reason, coalesce(p_details, '{}'));
end
$function$;

comment on function counterfoil.record_audit(text, text, jsonb, text, jsonb, timestamptz) is
'Writes one line of the audit trail: the action, its target, the reason and what changed; p_org_id is empty for the installation. Private.';

revoke all on function counterfoil.record_audit(text, text, jsonb, text, jsonb, timestamptz) from public;
