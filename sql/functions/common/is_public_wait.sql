-- is_public_wait: whether a fact announces a wait that others should see soon.
--
-- Promises: true for run.waiting, but not for a park behind a detached runner, which is transport only.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.is_public_wait(p_event_type text, p_payload jsonb)
returns boolean
language sql
immutable
parallel safe
called on null input
security invoker
as $function$
    select p_event_type = 'run.waiting' and p_payload ->> 'kind' is distinct from 'detached_runner'
$function$;

comment on function counterfoil.is_public_wait(text, jsonb) is
'Whether a fact of this type and payload is a public wait: run.waiting of any kind but detached_runner. Private.';

revoke all on function counterfoil.is_public_wait(text, jsonb) from public;
