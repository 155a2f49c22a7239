-- counter_share: one row's part of a number that sixteen rows share.
--
-- Promises: the sixteen shares add up to p_total and differ by one at most; null for null.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.counter_share(p_total bigint, p_shard integer)
returns bigint
language sql
immutable
parallel safe
strict
security invoker
as $function$
    select p_total / 16 + case when p_shard < p_total % 16 then 1 else 0 end
$function$;

comment on function counterfoil.counter_share(bigint, integer) is
'Part of p_total that falls to one of the sixteen rows of a counter. Private.';

revoke all on function counterfoil.counter_share(bigint, integer) from public;
