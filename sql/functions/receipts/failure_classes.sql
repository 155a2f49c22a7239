-- failure_classes: how failures look over HTTP, for a gateway to know by heart.
--
-- Promises: one row for each SQLSTATE, or beginning of one: status, code, whether a repeat can help and after how long. The longest
--           sqlstate_prefix that fits applies; where none does it is 500. error is the text, %s standing for what was
--           attempted; null means the failure's own message, which was written for people. hint says what to do where
--           the failure itself does not. A gateway reads this once when it starts, for the time when there is no database to
--           ask.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.failure_classes()
returns table (
    sqlstate_prefix text,
    status integer,
    code text,
    retryable boolean,
    retry_after_ms integer,
    error text,
    hint text
)
language sql
stable
parallel safe
called on null input
security definer
set search_path = pg_catalog, pg_temp
as $function$
    select t.sqlstate_prefix, t.status, t.code, t.retryable, t.retry_after_ms, t.error, t.hint
    from counterfoil.failure_table() as t
    order by t.sqlstate_prefix
$function$;

comment on function counterfoil.failure_classes() is
'HTTP status, code, retryable, retry_after_ms, error and hint of failures by SQLSTATE prefix; the longest that fits applies, else 500.';

revoke all on function counterfoil.failure_classes() from public;
