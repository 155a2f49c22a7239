-- receipt_failure_response: what a gateway answers when a call failed in the database.
--
-- Promises: status, headers and body by the failure's SQLSTATE (see failure_classes): no capacity and an unreachable database
--           are 503 with retry-after, code and retry_after_ms; what nobody expected is 500 with the reason in the header
--           x-counterfoil-error-detail and in the body. All texts are redacted. p_detail is the failure's DETAIL, p_hint
--           its HINT, instead of which there is that of the failure's class; p_operation names what was attempted: receipt,
--           ledger or runtime_sheet; of anything else, a read too, the code of what nobody expected is
--           runtime_durability_internal.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.receipt_failure_response(
    p_sqlstate text,
    p_message text,
    p_detail text default null,
    p_action text default null,
    p_operation text default 'receipt',
    p_hint text default null
)
returns table (status integer, headers jsonb, body jsonb)
language plpgsql
stable
parallel safe
called on null input
security definer
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_label text := case p_operation
        when 'ledger' then 'The ledger append'
        when 'runtime_sheet' then 'The sheet''s storage'
        when 'receipt' then 'The step receipt''s storage'
        else 'The request'
    end;
    -- Cut when redacted: half a secret would not be known as one.
    v_message text := left(coalesce(counterfoil.redact_text(nullif(p_message, '')), 'No reason is known.'), 2000);
    v_detail text := left(counterfoil.redact_text(p_detail), 2000);
    v_hint text := left(counterfoil.redact_text(nullif(p_hint, '')), 2000);
    v_class record;
    v_retry_after_ms integer;
    v_headers jsonb;
    v_body jsonb;
begin
    select f.status, f.code, f.retryable, f.retry_after_ms, f.error, f.hint
    into v_class
    from counterfoil.failure_table() as f
    where starts_with(p_sqlstate, f.sqlstate_prefix)
    order by length(f.sqlstate_prefix) desc
    limit 1;
    if not found then
        select
            500 as status,
            case p_operation
                when 'ledger' then 'run_ledger_append_failed'
                when 'runtime_sheet' then 'runtime_sheet_persistence_failed'
                when 'receipt' then 'work_receipt_persistence_failed'
                else 'runtime_durability_internal'
            end as code,
            false as retryable, null::integer as retry_after_ms, '%s failed.' as error,
            'Look into the gateway''s log, or ask its operator to; a repeat may fail likewise.' as hint
        into v_class;
    end if;

    v_retry_after_ms := v_class.retry_after_ms;
    if v_class.status in (429, 503) and p_detail ~ '^\{.*"retryAfterMs": ?[0-9]{1,9}[,}]' then
        v_retry_after_ms := substring(p_detail, '"retryAfterMs": ?([0-9]{1,9})')::integer;
    end if;

    v_headers := jsonb_build_object(
        'content-type', 'application/json', 'x-counterfoil-error-code', v_class.code
    ) || case
        when p_operation = 'receipt' then '{"x-counterfoil-receipt-wire-format": "3"}'::jsonb
        else '{}'::jsonb
    end || case
        when v_retry_after_ms is null then '{}'::jsonb
        else jsonb_build_object('retry-after', greatest(1, ceil(v_retry_after_ms / 1000.0))::text)
    end || case
        when v_class.status >= 500 then jsonb_build_object('x-counterfoil-error-detail', counterfoil.header_text(v_message))
        else '{}'::jsonb
    end;
    v_body := jsonb_build_object(
        'error', coalesce(format(v_class.error, v_label), v_message), 'code', v_class.code, 'retryable', v_class.retryable,
        'hint', coalesce(v_hint, v_class.hint)
    ) || case
        when v_retry_after_ms is null then '{}'::jsonb
        else jsonb_build_object('retry_after_ms', v_retry_after_ms)
    end || case
        when v_class.error is not null then jsonb_build_object('detail', v_message)
        when v_detail <> '' then jsonb_build_object('detail', v_detail)
        else '{}'::jsonb
    end || case
        when p_action is null then '{}'::jsonb
        else jsonb_build_object('action', left(p_action, 200))
    end;

    return query select v_class.status, v_headers, v_body;
end
$function$;

comment on function counterfoil.receipt_failure_response(text, text, text, text, text, text) is
'HTTP answer for a call that failed in the database, by SQLSTATE: (status, headers, body), redacted.';

revoke all on function counterfoil.receipt_failure_response(text, text, text, text, text, text) from public;
