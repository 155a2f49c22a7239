-- limits_document: a row of limits as JSON.
--
-- Promises: the four limits in camelCase, null for none.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.limits_document(p_limits counterfoil.admission_limits)
returns jsonb
language sql
immutable
parallel safe
called on null input
security invoker
as $function$
    select jsonb_build_object(
        'maxQueued', (p_limits).max_queued,
        'maxActive', (p_limits).max_active,
        'launchesPerMinute', (p_limits).launches_per_minute,
        'maxPerConcurrencyKey', (p_limits).max_per_concurrency_key
    )
$function$;

comment on function counterfoil.limits_document(counterfoil.admission_limits) is
'A row of admission limits as a JSON object. Private.';

revoke all on function counterfoil.limits_document(counterfoil.admission_limits) from public;
