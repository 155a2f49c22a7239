-- wake_channel: the NOTIFY channel of a queue.
--
-- Promises: a name of its own for every installation in a database.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.wake_channel(p_queue text)
returns text
language sql
stable
parallel safe
strict
security invoker
set search_path = pg_catalog, pg_temp
as $function$
    -- The class's schema, not a literal: two installations must not wake each other.
    select 'counterfoil_' || c.relnamespace::text || '_' || p_queue
    from pg_class as c
    where c.oid = 'counterfoil.listeners'::regclass
$function$;

comment on function counterfoil.wake_channel(text) is
'NOTIFY channel on which sleepers of the queue (attempts, lifecycle or search) are woken. Private.';

revoke all on function counterfoil.wake_channel(text) from public;
