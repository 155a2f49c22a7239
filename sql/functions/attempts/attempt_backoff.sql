-- attempt_backoff: how long a run waits for its next attempt.
--
-- Promises: the base, doubled for each attempt after the first, never over the maximum; of that, the share p_jitter is
--           left to chance, so that what failed together does not come back together.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.attempt_backoff(
    p_attempt integer, p_base_ms numeric, p_maximum_ms numeric, p_jitter numeric
)
returns interval
language sql
volatile
parallel safe
strict
security invoker
as $function$
    select make_interval(secs =>
        least(p_maximum_ms, p_base_ms * 2::numeric ^ least(p_attempt - 1, 40))::double precision / 1000
        * (1 - round(p_jitter, 6)::double precision * random())
    )
$function$;

comment on function counterfoil.attempt_backoff(integer, numeric, numeric, numeric) is
'Wait before the attempt after p_attempt: exponential from p_base_ms to p_maximum_ms, the share p_jitter of it random. Private.';

revoke all on function counterfoil.attempt_backoff(integer, numeric, numeric, numeric) from public;
