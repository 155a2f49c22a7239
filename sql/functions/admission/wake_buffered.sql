-- wake_buffered: has a schedule looked at whose firing waited for the end of a run.
--
-- Promises: when p_run_id was the latest run of a schedule with such a firing, it is due now and workers are woken. Where
--           somebody is at work on the schedule, it is looked at some seconds later.
-- Locks:    the schedule, passing over what is locked: it waits for nobody.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.wake_buffered(p_org_id text, p_run_id text, p_now timestamptz)
returns void
language plpgsql
volatile
parallel unsafe
strict
security invoker
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_name text := substring(p_run_id from '^schedule:(.*):.{4}-.{2}-.{2}T.{2}:.{2}Z$');
begin
    perform
    from counterfoil.schedules as s
    where s.org_id = p_org_id
        and s.name = v_name
        and s.last_run_id = p_run_id
        and s.buffered_at is not null
        and s.look_at > p_now
    for no key update skip locked;
    if found then
        update counterfoil.schedules as s
        set look_at = p_now
        where s.org_id = p_org_id and s.name = v_name;
        perform counterfoil.wake('attempts');
    end if;
end
$function$;

comment on function counterfoil.wake_buffered(text, text, timestamptz) is
'Makes the schedule due that waited for the end of a run it had launched. Private.';

revoke all on function counterfoil.wake_buffered(text, text, timestamptz) from public;
