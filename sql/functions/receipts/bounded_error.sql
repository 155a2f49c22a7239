-- bounded_error: the message of a failure, fit to be kept.
--
-- Promises: secrets redacted, at most p_max_bytes; a cut is marked at the end by [truncated].
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.bounded_error(p_error text, p_max_bytes integer)
returns text
language sql
immutable
parallel safe
strict
security invoker
set search_path = pg_catalog, pg_temp
as $function$
    -- Redacted before the cut: half a secret looks like none. What is far behind the cut is not even looked at, and
    -- what the look ends in may be such a half.
    select case
        when octet_length(r.error) > p_max_bytes or l.is_cut then counterfoil.cut_text(r.error, p_max_bytes - 12) || ' [truncated]'
        else r.error
    end
    from (select length(p_error) > 65536 as is_cut) as l
    cross join lateral (
        select case
            when l.is_cut then left(counterfoil.redact_text(left(p_error, 65536)), -255)
            else counterfoil.redact_text(p_error)
        end as error
    ) as r
$function$;

comment on function counterfoil.bounded_error(text, integer) is
'A failure''s message with secrets redacted, cut at p_max_bytes with a mark. Private.';

revoke all on function counterfoil.bounded_error(text, integer) from public;
