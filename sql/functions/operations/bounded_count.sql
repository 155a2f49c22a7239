-- bounded_count: a count that stopped somewhere, as health() shows it.
--
-- Promises: {"count": n, "atLeast": false}, or the bound and true where there are more.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.bounded_count(p_count bigint, p_most bigint)
returns jsonb
language sql
immutable
parallel safe
strict
security invoker
as $function$
    select jsonb_build_object('count', least(p_count, p_most), 'atLeast', p_count > p_most)
$function$;

comment on function counterfoil.bounded_count(bigint, bigint) is
'A count that went no further than p_most + 1, as {count, atLeast}. Private.';

revoke all on function counterfoil.bounded_count(bigint, bigint) from public;
