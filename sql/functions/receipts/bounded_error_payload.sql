-- bounded_error_payload: the structured part of a failure, fit to be kept.
--
-- Promises: sanitised; one of more than p_max_bytes is replaced by {"truncated": true, "bytes": n}, since losing the detail is
--           better than losing the failure. Null for null and JSON null.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.bounded_error_payload(p_payload jsonb, p_max_depth integer, p_max_bytes integer)
returns jsonb
language sql
stable
parallel safe
strict
security invoker
set search_path = pg_catalog, pg_temp
as $function$
    select case
        when p_payload = 'null'::jsonb then null
        when counterfoil.json_bytes(p_payload) > p_max_bytes
            then jsonb_build_object('truncated', true, 'bytes', counterfoil.json_bytes(p_payload))
        else counterfoil.sanitize_payload(p_payload, p_max_depth)
    end
$function$;

comment on function counterfoil.bounded_error_payload(jsonb, integer, integer) is
'A failure''s structured payload, sanitised, or a note of its size where it is too large. Private.';

revoke all on function counterfoil.bounded_error_payload(jsonb, integer, integer) from public;
