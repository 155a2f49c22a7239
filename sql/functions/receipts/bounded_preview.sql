-- bounded_preview: what a reader may see of a value.
--
-- Promises: sanitised; of more than p_max_bytes only the beginning of its JSON text, as a string. Null for null and JSON null.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.bounded_preview(p_value jsonb, p_max_depth integer, p_max_bytes integer)
returns jsonb
language sql
stable
parallel safe
strict
security invoker
set search_path = pg_catalog, pg_temp
as $function$
    select case
        when p_value = 'null'::jsonb then null
        when octet_length(s.clean::text) <= p_max_bytes then s.clean
        -- A character has four bytes at most; quotes inside grow by their backslashes, so half of what would fit.
        else to_jsonb(left(s.clean::text, p_max_bytes / 8))
    end
    from (select counterfoil.sanitize_payload(p_value, p_max_depth) as clean) as s
$function$;

comment on function counterfoil.bounded_preview(jsonb, integer, integer) is
'A value sanitised and, where its JSON text is longer than p_max_bytes, cut to a string of its beginning. Private.';

revoke all on function counterfoil.bounded_preview(jsonb, integer, integer) from public;
