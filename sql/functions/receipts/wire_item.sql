-- wire_item: one write of the receipt wire in the shape that the functions take.
--
-- Promises: key trimmed; lease id, attempt, output, time to live, error, its payload and kind as far as they have the right type;
--           anything else falls away. A failure is terminal unless it says repairable.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.wire_item(p_item jsonb)
returns jsonb
language sql
immutable
parallel safe
strict
security invoker
as $function$
    select jsonb_build_object(
        'key', counterfoil.trim_key(p_item ->> 'key'),
        'leaseId', case when jsonb_typeof(p_item -> 'leaseId') = 'string' then nullif(p_item ->> 'leaseId', '') end,
        'runAttempt', case when jsonb_typeof(p_item -> 'runAttempt') = 'number' then trim_scale((p_item ->> 'runAttempt')::numeric) end,
        'ttlSeconds', case when jsonb_typeof(p_item -> 'ttlSeconds') = 'number' then p_item -> 'ttlSeconds' end,
        'output', p_item -> 'output',
        'error', coalesce(p_item ->> 'error', ''),
        'errorPayload', case when jsonb_typeof(p_item -> 'errorPayload') = 'object' then p_item -> 'errorPayload' end,
        'failureKind', case when p_item -> 'failureKind' = '"repairable"'::jsonb then 'repairable' else 'terminal' end
    )
$function$;

comment on function counterfoil.wire_item(jsonb) is
'One write of the receipt wire, in the shape that the receipt functions take. Private.';

revoke all on function counterfoil.wire_item(jsonb) from public;
