-- http_answer: an HTTP answer of an endpoint whose work is done in SQL.
--
-- Promises: status, headers with content-type and p_headers, body.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.http_answer(p_status integer, p_body jsonb, p_headers jsonb default '{}')
returns table (status integer, headers jsonb, body jsonb)
language sql
immutable
parallel safe
called on null input
security invoker
as $function$
    select p_status, '{"content-type": "application/json"}'::jsonb || p_headers, p_body
$function$;

comment on function counterfoil.http_answer(integer, jsonb, jsonb) is
'One row (status, headers, body) of an HTTP answer with a JSON body. Private.';

revoke all on function counterfoil.http_answer(integer, jsonb, jsonb) from public;
