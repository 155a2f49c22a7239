-- refuse_firing: notes that a schedule's launch was refused.
--
-- Promises: where a limit had no room, the firing is tried again when the refusal said; where the launch itself was refused, it
--           is given up, and the next one is waited for; after any other error it is tried again in a minute. The
--           schedule says why.
-- Locks:    the caller holds the schedule.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.refuse_firing(
    p_org_id text, p_name text, p_sqlstate text, p_message text, p_detail text, p_now timestamptz
)
returns void
language plpgsql
volatile
parallel unsafe
called on null input
security invoker
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_schedule counterfoil.schedules := counterfoil.hold_schedule(p_org_id, p_name);
    v_next timestamptz := v_schedule.next_fire_at;
    v_later timestamptz;
begin
    if p_sqlstate in ('RL006', 'RL007') then
        v_later := p_now + (p_detail::jsonb ->> 'retryAfterMs')::integer * interval '1 millisecond';
    elsif p_sqlstate like 'RL%' then
        v_next := counterfoil.next_fire_at(v_schedule, p_now);
    else
        v_later := p_now + interval '1 minute';
    end if;
    update counterfoil.schedules as s
    set
        next_fire_at = v_next,
        look_at = coalesce(v_later, v_next),
        buffered_at = case when v_later is not null then s.buffered_at end,
        last_outcome = 'refused',
        last_error = left(format('%s: %s', p_sqlstate, p_message), 1000)
    where s.org_id = p_org_id and s.name = p_name;
end
$function$;

comment on function counterfoil.refuse_firing(text, text, text, text, text, timestamptz) is
'Notes on a schedule that its launch was refused, and when to go on. Private.';

revoke all on function counterfoil.refuse_firing(text, text, text, text, text, timestamptz) from public;
