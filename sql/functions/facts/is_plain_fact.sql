-- is_plain_fact: whether a fact needs no closer look.
--
-- Promises: true only for what check_fact would accept whatever the settings are: an id, a known type that ends or starts
--           nothing and carries no list of events, and a small object without flags. False says nothing.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.is_plain_fact(p_event_id text, p_event_type text, p_payload jsonb)
returns boolean
language sql
immutable
parallel safe
called on null input
security invoker
as $function$
    select coalesce(
        counterfoil.is_id(p_event_id)
        and p_event_type in ('run.progress', 'run.waiting', 'run.resumed', 'step.receipt', 'runner.logs')
        and jsonb_typeof(p_payload) = 'object'
        and not p_payload ?| array['searchOnly', 'deferredProjection']
        -- Under the least that fact_max_bytes can be, and too short to nest too deeply or hold too long a number.
        and octet_length(p_payload::text) <= 400,
        false
    )
$function$;

comment on function counterfoil.is_plain_fact(text, text, jsonb) is
'Whether check_fact would accept a fact of this id, type and payload without a closer look; false says nothing. Private.';

revoke all on function counterfoil.is_plain_fact(text, text, jsonb) from public;
