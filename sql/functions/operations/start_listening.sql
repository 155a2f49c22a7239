-- start_listening: registers a process that is about to sleep until it is woken.
--
-- Promises: answers the channel to LISTEN on. Until p_seconds (1…3600) are over, whatever fills the queue notifies it. Register,
--           commit, look for work once more, then sleep: what came before the registration woke nobody.
-- Locks:    the listener's own row.
-- Raises:   RL001 malformed arguments.
-- Since:    1

create or replace function counterfoil.start_listening(p_listener text, p_queue text, p_seconds integer)
returns text
language plpgsql
volatile
parallel unsafe
called on null input
security definer
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_now timestamptz;
begin
    perform counterfoil.check_id(p_listener, 'p_listener');
    if p_queue is null or p_queue not in ('attempts', 'lifecycle', 'search') then
        perform counterfoil.raise_invalid_argument(
            'p_queue is no queue.', 'p_queue', 'Queues are attempts, lifecycle and search.'
        );
    end if;
    perform counterfoil.check_limit(p_seconds, 1, 3600, 'p_seconds');

    v_now := clock_timestamp();
    insert into counterfoil.listeners as l (listener, queue, asleep_until)
    values (p_listener, p_queue, v_now + make_interval(secs => p_seconds))
    on conflict on constraint listeners_pkey do update set asleep_until = excluded.asleep_until;

    return counterfoil.wake_channel(p_queue);
end
$function$;

comment on function counterfoil.start_listening(text, text, integer) is
'Registers p_listener as asleep on a queue (attempts, lifecycle, search) for p_seconds; answers the channel to LISTEN on.';

revoke all on function counterfoil.start_listening(text, text, integer) from public;
