-- bounded_preview: what a reader may see of a value.
--
-- Promises: sanitised; of more than p_max_bytes only the beginning of its JSON text, as a string, and then is_cut. What lay
--           too deep counts as cut as well. Null for null and JSON null.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.bounded_preview(p_value jsonb, p_max_depth integer, p_max_bytes integer)
returns table (preview jsonb, is_cut boolean)
language plpgsql
stable
parallel safe
called on null input
security invoker
set search_path = pg_catalog, pg_temp
as $function$
begin
    is_cut := false;
    if p_value is not null and p_value <> 'null'::jsonb then
        preview := counterfoil.sanitize_payload(p_value, p_max_depth);
        is_cut := preview <> p_value and strpos(preview::text, '"[truncated]"') > 0;
        -- Measured as it is kept: a marker may be longer than the secret that it stands for.
        if octet_length(preview::text) > p_max_bytes then
            -- A character has four bytes at most; quotes inside grow by their backslashes, so half of what would fit.
            preview := to_jsonb(left(preview::text, p_max_bytes / 8));
            is_cut := true;
        end if;
    end if;
    return next;
end
$function$;

comment on function counterfoil.bounded_preview(jsonb, integer, integer) is
'A value sanitised and, where its JSON text is longer than p_max_bytes, cut to a string of its beginning; is_cut says so. Private.';

revoke all on function counterfoil.bounded_preview(jsonb, integer, integer) from public;
