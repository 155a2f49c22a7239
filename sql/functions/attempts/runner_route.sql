-- runner_route: where the runner of a run may be forwarded to.
--
-- Promises: the base URL that the launch pinned, and the launch's own protection-bypass token, null where it brought none;
--           only while the run has not ended. Nothing else of the launch.
-- Locks:    nothing.
-- Raises:   RL001 malformed ids; RL002 run_not_found; RL005 run_ended.
-- Since:    1

create or replace function counterfoil.runner_route(p_org_id text, p_run_id text)
returns table (base_url text, protection_bypass_token text)
language plpgsql
stable
parallel safe
called on null input
security definer
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_run record;
begin
    perform counterfoil.check_id(p_org_id, 'p_org_id');
    perform counterfoil.check_id(p_run_id, 'p_run_id');

    select r.status, a.dispatch_authority
    into v_run
    from counterfoil.runs as r
    inner join counterfoil.launches as a on a.org_id = p_org_id and a.run_id = p_run_id
    where r.org_id = p_org_id and r.run_id = p_run_id;
    if not found then
        perform counterfoil.raise_run_not_found(p_run_id);
    end if;
    if v_run.status in ('completed', 'failed', 'cancelled') then
        perform counterfoil.raise_invalid_state(
            'The run has ended.', 'run_ended', 'The runner of a run that has ended has nothing more to ask.'
        );
    end if;

    return query
    select
        counterfoil.runtime_base_url(v_run.dispatch_authority),
        nullif(v_run.dispatch_authority ->> 'vercelProtectionBypassToken', '');
end
$function$;

comment on function counterfoil.runner_route(text, text) is
'Base URL that a run''s launch pinned and the launch''s protection-bypass token, while the run has not ended: what a gateway needs to forward the runner''s requests.';

revoke all on function counterfoil.runner_route(text, text) from public;
