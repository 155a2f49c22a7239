-- bounded_preview: what a reader may see of a value.
--
-- Promises: sanitised; of more than p_max_bytes only the beginning of its JSON text, as a string of as many bytes as that
--           at most, quotation marks and escapes counted, and then is_cut. What lay too deep counts as cut as well. Null for
--           null and JSON null.
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
declare
    v_string text;
begin
    is_cut := false;
    if p_value is not null and p_value <> 'null'::jsonb then
        preview := counterfoil.sanitize_payload(p_value, p_max_depth);
        is_cut := preview <> p_value and strpos(preview::text, '"[truncated]"') > 0;
        -- Measured as it is kept: a marker may be longer than the secret that it stands for.
        if octet_length(preview::text) > p_max_bytes then
            -- Cut as it is written, with its escapes, and not within one: a backslash without its partner goes.
            v_string := counterfoil.cut_text(to_jsonb(left(preview::text, p_max_bytes))::text, p_max_bytes - 1);
            if length(substring(v_string, '\\*$')) % 2 = 1 then
                v_string := left(v_string, -1);
            end if;
            preview := (v_string || '"')::jsonb;
            is_cut := true;
        end if;
    end if;
    return next;
end
$function$;

comment on function counterfoil.bounded_preview(jsonb, integer, integer) is
'A value sanitised and, where its JSON text is longer than p_max_bytes, cut to a string of its beginning; is_cut says so. Private.';

revoke all on function counterfoil.bounded_preview(jsonb, integer, integer) from public;
