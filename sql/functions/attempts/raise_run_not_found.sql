-- raise_run_not_found: refuses a run that the org does not have.
--
-- Promises: never returns.
-- Locks:    nothing.
-- Raises:   RL002 run_not_found.
-- Since:    1

create or replace function counterfoil.raise_run_not_found(p_run_id text)
returns void
language plpgsql
volatile
parallel unsafe
called on null input
security invoker
set search_path = pg_catalog, pg_temp
as $function$
begin
    perform counterfoil.raise_not_found(
        format('The org has no run %s.', p_run_id), 'run_not_found', 'Check p_org_id and p_run_id.'
    );
end
$function$;

comment on function counterfoil.raise_run_not_found(text) is
'Raises RL002 run_not_found. Private.';

revoke all on function counterfoil.raise_run_not_found(text) from public;
