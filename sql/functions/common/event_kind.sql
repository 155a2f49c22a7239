-- event_kind: what kind of fact an event type is.
--
-- Promises: start, ingress, progress, terminal or carrier; null for an unknown type. Not strict: a case is not, and
--           a strict function around it would not be inlined, at sixty times the cost.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.event_kind(p_event_type text)
returns text
language sql
immutable
parallel safe
called on null input
security invoker
as $function$
    select case
        when p_event_type in ('run.created', 'run.started') then 'start'
        when p_event_type = 'run.events' then 'ingress'
        when p_event_type in ('run.progress', 'run.waiting', 'run.resumed') then 'progress'
        when p_event_type in ('run.completed', 'run.failed', 'run.cancelled') then 'terminal'
        when p_event_type in ('step.receipt', 'runner.logs') then 'carrier'
    end
$function$;

comment on function counterfoil.event_kind(text) is
'Kind of an event type: start, ingress, progress, terminal or carrier; null for an unknown type. Private.';

revoke all on function counterfoil.event_kind(text) from public;
