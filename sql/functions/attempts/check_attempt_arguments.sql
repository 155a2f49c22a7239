-- check_attempt_arguments: refuses what names no attempt and no lease.
--
-- Promises: returns only when all four are well formed.
-- Locks:    nothing.
-- Raises:   RL001.
-- Since:    1

create or replace function counterfoil.check_attempt_arguments(
    p_org_id text, p_run_id text, p_attempt integer, p_lease_id text
)
returns void
language plpgsql
volatile
parallel unsafe
called on null input
security invoker
set search_path = pg_catalog, pg_temp
as $function$
begin
    perform counterfoil.check_id(p_org_id, 'p_org_id');
    perform counterfoil.check_id(p_run_id, 'p_run_id');
    perform counterfoil.check_limit(p_attempt, 1, 2147483647, 'p_attempt');
    perform counterfoil.check_id(p_lease_id, 'p_lease_id');
end
$function$;

comment on function counterfoil.check_attempt_arguments(text, text, integer, text) is
'Refuses malformed org, run, attempt or lease (RL001). Private.';

revoke all on function counterfoil.check_attempt_arguments(text, text, integer, text) from public;
