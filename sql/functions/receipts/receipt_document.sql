-- receipt_document: a step receipt as callers see it.
--
-- Promises: key, status, runId, leaseOwnerAttempt, claims and times; while it runs, leaseExpiresAt and how long to wait
--           before asking again (retryAfterMs); once settled, output, error, errorPayload, failureKind, expiresAt as the status
--           has them. The lease id only where p_with_lease: it is its holder's proof. output only where p_with_output.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.receipt_document(
    p_receipt counterfoil.step_receipts,
    p_now timestamptz,
    p_with_output boolean,
    p_with_lease boolean
)
returns jsonb
language sql
stable
parallel safe
called on null input
security invoker
as $function$
    select jsonb_build_object(
        'key', (p_receipt).key,
        'status', (p_receipt).status,
        'runId', (p_receipt).run_id,
        'leaseOwnerAttempt', (p_receipt).run_attempt,
        'claims', (p_receipt).claims,
        'updatedAt', counterfoil.iso_time((p_receipt).updated_at)
    ) || case
        when p_with_lease and (p_receipt).lease_id is not null then jsonb_build_object('leaseId', (p_receipt).lease_id)
        else '{}'::jsonb
    end || case (p_receipt).status
        when 'queued' then '{}'::jsonb
        when 'running' then jsonb_build_object(
            'leaseExpiresAt', counterfoil.iso_time((p_receipt).lease_expires_at),
            'retryAfterMs', least(1000, greatest(1, ceil(1000 * extract(epoch from (p_receipt).lease_expires_at - p_now))))::integer
        )
        when 'failed' then jsonb_build_object(
            'error', (p_receipt).error,
            'failureKind', (p_receipt).failure_kind,
            'settledAt', counterfoil.iso_time((p_receipt).settled_at)
        ) || case
            when (p_receipt).error_payload is null then '{}'::jsonb
            else jsonb_build_object('errorPayload', (p_receipt).error_payload)
        end
        else jsonb_build_object('settledAt', counterfoil.iso_time((p_receipt).settled_at))
            || case when p_with_output then jsonb_build_object('output', (p_receipt).output) else '{}'::jsonb end
            || case
                when (p_receipt).expires_at is null then '{}'::jsonb
                else jsonb_build_object('expiresAt', counterfoil.iso_time((p_receipt).expires_at))
            end
    end
$function$;

comment on function counterfoil.receipt_document(counterfoil.step_receipts, timestamptz, boolean, boolean) is
'A step receipt as a JSON document in the wire''s spelling; output and lease id only where asked for. Private.';

revoke all on function counterfoil.receipt_document(counterfoil.step_receipts, timestamptz, boolean, boolean) from public;
