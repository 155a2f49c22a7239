-- raise_capacity: raises RL006 capacity, the one place that does.
--
-- Promises: never returns. Locks: nothing.
-- Raises:   RL006; DETAIL = {"limit": …, "retryAfterMs": …}.
-- Since:    1

create or replace function counterfoil.raise_capacity(p_message text, p_limit text, p_retry_after_ms integer)
returns void
language plpgsql
volatile
parallel unsafe
called on null input
security invoker
set search_path = pg_catalog, pg_temp
as $function$
begin
    raise exception using
        errcode = 'RL006',
        message = coalesce(p_message, 'capacity'),
        detail = jsonb_build_object('limit', p_limit, 'retryAfterMs', greatest(coalesce(p_retry_after_ms, 1000), 1))::text,
        hint = 'Try again after retryAfterMs milliseconds, or have the limit raised.';
end
$function$;

comment on function counterfoil.raise_capacity(text, text, integer) is
'Raises RL006 capacity: the installation or the database has no room now. DETAIL is JSON: limit names the limit, retryAfterMs is the wait in milliseconds. Private.';

revoke all on function counterfoil.raise_capacity(text, text, integer) from public;
