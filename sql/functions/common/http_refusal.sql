-- http_refusal: an HTTP answer that says no to a request.
--
-- Promises: body {error, code, retryable: false, hint, detail}; the code for programs also in the header
--           x-counterfoil-error-code. p_hint says what to do.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.http_refusal(
    p_status integer,
    p_code text,
    p_error text,
    p_hint text,
    p_detail text default null,
    p_headers jsonb default '{}'
)
returns table (status integer, headers jsonb, body jsonb)
language sql
immutable
parallel safe
called on null input
security invoker
as $function$
    select
        p_status,
        jsonb_build_object('content-type', 'application/json', 'x-counterfoil-error-code', p_code) || p_headers,
        jsonb_build_object('error', p_error, 'code', p_code, 'retryable', false, 'hint', p_hint)
        || case when p_detail is null then '{}'::jsonb else jsonb_build_object('detail', p_detail) end
$function$;

comment on function counterfoil.http_refusal(integer, text, text, text, text, jsonb) is
'One row (status, headers, body) that refuses a request: {error, code, retryable: false, hint, detail}. Private.';

revoke all on function counterfoil.http_refusal(integer, text, text, text, text, jsonb) from public;
