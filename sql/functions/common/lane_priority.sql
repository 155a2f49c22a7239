-- lane_priority: how urgent facts are that wait in a lane.
--
-- Promises: 0 when they begin with the run's first fact, 1 with a terminal among them, 2 with a public wait, else 3.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.lane_priority(p_first_seq bigint, p_terminal_seq bigint, p_wait_seq bigint)
returns smallint
language sql
immutable
parallel safe
called on null input
security invoker
as $function$
    select (case when p_first_seq = 1 then 0 when p_terminal_seq is not null then 1 when p_wait_seq is not null then 2 else 3 end)::smallint
$function$;

comment on function counterfoil.lane_priority(bigint, bigint, bigint) is
'Priority (0 to 3) of a lane whose pending facts begin at p_first_seq and hold a terminal and a public wait at these positions, or none. Private.';

revoke all on function counterfoil.lane_priority(bigint, bigint, bigint) from public;
