-- place_retry_ms: when a launch that found the queue full should try again.
--
-- Promises: milliseconds, from a second to a minute. Nobody knows the future: it is what the missing places take at the rate at
--           which places came free lately (the last minute or so, newer ones count for more), and no less than the time since
--           the last one, so that it grows where they have stopped coming. A minute where none of p_limit places could ever do,
--           so that only a higher limit or fewer launches help: callers say the limit.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.place_retry_ms(p_org_id text, p_count bigint, p_queued bigint, p_limit bigint)
returns integer
language plpgsql
volatile
parallel unsafe
strict
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $function$
declare
    v_now timestamptz := clock_timestamp();
    v_idle double precision;
    v_rate double precision;
begin
    if p_count > p_limit then
        return 60000;
    end if;

    select
        extract(epoch from v_now - max(c.freed_at))::double precision,
        -- What a steady rate would have left behind in that time, divided by what is there, is a second's worth.
        sum(counterfoil.faded(c.freed_lately, c.freed_at, v_now))
        / nullif(60 * (1 - counterfoil.faded(1, min(c.counted_since), v_now)), 0)
    into v_idle, v_rate
    from counterfoil.admission_counters as c
    where c.org_id = p_org_id;
    -- Where almost nothing has come free the time since the last one says it all, and the quotient has no bounds.
    return (
        1000 * least(60, greatest(1, v_idle, (p_queued + p_count - p_limit) / nullif(greatest(v_rate, 1e-9), 1e-9)))
    )::integer;
end
$function$;

comment on function counterfoil.place_retry_ms(text, bigint, bigint, bigint) is
'Milliseconds after which p_count launches that found p_queued of p_limit places taken may find room, from how fast places came free lately. Private.';

revoke all on function counterfoil.place_retry_ms(text, bigint, bigint, bigint) from public;
