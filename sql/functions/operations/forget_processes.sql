-- forget_processes: takes out workers and listeners that are gone.
--
-- Promises: up to p_limit of each that have not been heard of for a day, and how many there were. One that lives after all
--           is known again with its next claim or registration.
-- Locks:    those rows, passing over what is locked.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.forget_processes(p_limit integer)
returns bigint
language plpgsql
volatile
parallel unsafe
strict
security invoker
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_before timestamptz := clock_timestamp() - interval '1 day';
    v_forgotten bigint;
begin
    with gone_workers as (
        delete from counterfoil.workers as w
        where w.ctid = any (array(
            select g.ctid
            from counterfoil.workers as g
            where g.last_seen_at < v_before
            limit p_limit
            for update skip locked
        )) and w.last_seen_at < v_before
        returning w.worker
    ),

    gone_listeners as (
        delete from counterfoil.listeners as l
        where l.ctid = any (array(
            select g.ctid
            from counterfoil.listeners as g
            where g.asleep_until < v_before
            limit p_limit
            for update skip locked
        )) and l.asleep_until < v_before
        returning l.listener
    )

    select (select count(*) from gone_workers as w) + (select count(*) from gone_listeners as l) into v_forgotten;
    return v_forgotten;
end
$function$;

comment on function counterfoil.forget_processes(integer) is
'Takes out workers and listeners that have not been heard of for a day, up to p_limit of each. Private.';

revoke all on function counterfoil.forget_processes(integer) from public;
