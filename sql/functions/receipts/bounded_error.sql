-- bounded_error: the message of a failure, fit to be kept.
--
-- Promises: secrets redacted, at most 8192 characters; a cut is marked at the end.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.bounded_error(p_error text)
returns text
language sql
immutable
parallel safe
strict
security invoker
set search_path = pg_catalog, pg_temp
as $function$
    -- Redacted before the cut: half a secret looks like none. What is far behind the cut is not even looked at.
    select case
        when length(r.error) > 8192 then left(r.error, 8180) || ' [truncated]'
        else r.error
    end
    from (select counterfoil.redact_text(left(p_error, 65536)) as error) as r
$function$;

comment on function counterfoil.bounded_error(text) is
'A failure''s message with secrets redacted, cut at 8192 characters. Private.';

revoke all on function counterfoil.bounded_error(text) from public;
