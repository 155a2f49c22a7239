-- check_cancellation: refuses a malformed cancellation.
--
-- Promises: returns only when run and reason are well formed.
-- Locks:    nothing.
-- Raises:   RL001.
-- Since:    1

create or replace function counterfoil.check_cancellation(p_org_id text, p_run_id text, p_reason text)
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
    if length(p_reason) > 2000 then
        perform counterfoil.raise_invalid_argument(
            format('p_reason has %s characters; a reason may have 2000.', length(p_reason)), 'p_reason',
            'Give a shorter reason.'
        );
    end if;
end
$function$;

comment on function counterfoil.check_cancellation(text, text, text) is
'Refuses a malformed run id or a reason that is too long (RL001). Private.';

revoke all on function counterfoil.check_cancellation(text, text, text) from public;
