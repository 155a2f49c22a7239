-- wait_answer: what a public wait ended with.
--
-- Promises: {eventName, payload, timedOut}; null while the wait lasts. eventName is JSON null for an unnamed resume.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.wait_answer(p_org_id text, p_run_id text, p_wait_id text)
returns jsonb
language sql
stable
parallel safe
strict
security invoker
set search_path = pg_catalog, pg_temp
as $function$
    select jsonb_build_object(
        'eventName', nullif(w.event_name, ''), 'payload', s.payload, 'timedOut', w.outcome = 'timed_out'
    )
    from counterfoil.run_waits as w
    left join counterfoil.run_signals as s
        on s.org_id = w.org_id and s.run_id = w.run_id and s.signal_id = w.signal_id
    where w.org_id = p_org_id and w.run_id = p_run_id and w.wait_id = p_wait_id and w.outcome is not null
$function$;

comment on function counterfoil.wait_answer(text, text, text) is
'What ended a public wait, as {eventName, payload, timedOut}; null while it lasts. Private.';

revoke all on function counterfoil.wait_answer(text, text, text) from public;
