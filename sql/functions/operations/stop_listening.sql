-- stop_listening: strikes a listener off: it is awake, or gone.
--
-- Promises: nobody notifies on the listener's account any more, whatever queues it slept on. Safe to repeat.
-- Locks:    the listener's own rows.
-- Raises:   RL001 a malformed name.
-- Since:    1

create or replace function counterfoil.stop_listening(p_listener text)
returns void
language plpgsql
volatile
parallel unsafe
called on null input
security definer
set search_path = pg_catalog, pg_temp
as $function$
begin
    perform counterfoil.check_id(p_listener, 'p_listener');
    delete from counterfoil.listeners as l
    where l.listener = p_listener;
end
$function$;

comment on function counterfoil.stop_listening(text) is
'Strikes p_listener off all queues.';

revoke all on function counterfoil.stop_listening(text) from public;
