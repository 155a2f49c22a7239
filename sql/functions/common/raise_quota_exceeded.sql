-- raise_quota_exceeded: raises RL007 quota_exceeded, the one place that does.
--
-- Promises: never returns. Locks: nothing.
-- Raises:   RL007; DETAIL = {"limit": …, "retryAfterMs": …}.
-- Since:    1

create or replace function counterfoil.raise_quota_exceeded(p_message text, p_limit text, p_retry_after_ms integer)
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
        errcode = 'RL007',
        message = coalesce(p_message, 'quota_exceeded'),
        detail = jsonb_build_object('limit', p_limit, 'retryAfterMs', greatest(coalesce(p_retry_after_ms, 1000), 1))::text,
        hint = 'Try again after retryAfterMs milliseconds, or have the limit raised.';
end
$function$;

comment on function counterfoil.raise_quota_exceeded(text, text, integer) is
'Raises RL007 quota_exceeded: the org reached a limit of its own. DETAIL is JSON: limit names the limit, retryAfterMs is the wait in milliseconds. Private.';

revoke all on function counterfoil.raise_quota_exceeded(text, text, integer) from public;
