-- wake: wakes those who sleep until a queue has work.
--
-- Promises: one NOTIFY when a listener of the queue is registered as asleep, else nothing.
--           A NOTIFY takes a lock shared by the whole database at commit, so it is not sent for nobody.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.wake(p_queue text)
returns void
language plpgsql
volatile
parallel unsafe
strict
security invoker
set search_path = pg_catalog, pg_temp
as $function$
begin
    if exists (
        select from counterfoil.listeners as l
        where l.queue = p_queue and l.asleep_until > clock_timestamp()
    ) then
        perform pg_notify(counterfoil.wake_channel(p_queue), '');
    end if;
end
$function$;

comment on function counterfoil.wake(text) is
'Notifies the sleepers of a queue (attempts, lifecycle or search), if there are any. Private.';

revoke all on function counterfoil.wake(text) from public;
