-- wire_options: the options of a claim request.
--
-- Promises: the known switches, on only where the request says true; leaseSeconds and ttlSeconds where they are numbers.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.wire_options(p_body jsonb)
returns jsonb
language sql
immutable
parallel safe
strict
security invoker
as $function$
    select jsonb_build_object(
        'leaseAware', p_body -> 'leaseAware' is not distinct from 'true'::jsonb,
        'reclaimRunning', p_body -> 'reclaimRunning' is not distinct from 'true'::jsonb,
        'reclaimOwnRun', p_body -> 'reclaimOwnRun' is not distinct from 'true'::jsonb,
        'forceRefresh', p_body -> 'forceRefresh' is not distinct from 'true'::jsonb,
        'forceFailedRefresh', p_body -> 'forceFailedRefresh' is not distinct from 'true'::jsonb,
        'ttlSeconds', case when jsonb_typeof(p_body -> 'ttlSeconds') = 'number' then p_body -> 'ttlSeconds' end,
        'leaseSeconds', case
            when jsonb_typeof(p_body -> 'leaseSeconds') = 'number' then counterfoil.whole_number(p_body -> 'leaseSeconds')
        end
    )
$function$;

comment on function counterfoil.wire_options(jsonb) is
'The options of a claim request in the shape that claim_receipts takes. Private.';

revoke all on function counterfoil.wire_options(jsonb) from public;
