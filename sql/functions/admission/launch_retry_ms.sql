-- launch_retry_ms: when another try at launching has a chance.
--
-- Promises: milliseconds: to the end of the clock minute for launches_per_minute, else a second, since places in the queue
--           come free whenever a worker claims.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.launch_retry_ms(p_limit text)
returns integer
language sql
volatile
parallel safe
strict
security invoker
as $function$
    select case p_limit
        when 'launches_per_minute' then
            60000 - (extract(epoch from t.now - date_trunc('minute', t.now, 'UTC')) * 1000)::integer + 1
        else 1000
    end
    from (select clock_timestamp() as now) as t
$function$;

comment on function counterfoil.launch_retry_ms(text) is
'Milliseconds after which a launch refused under that limit has a chance. Private.';

revoke all on function counterfoil.launch_retry_ms(text) from public;
