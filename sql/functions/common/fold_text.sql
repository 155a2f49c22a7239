-- fold_text: a text as searches compare it, whatever its case and however its letters are composed.
--
-- Promises: lower case, as the database's locale has it, and composed (NFC), so that é is the same as one character and
--           as two. Folding what is folded changes nothing.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.fold_text(p_text text)
returns text
language plpgsql
immutable
parallel safe
strict
security invoker
set search_path = pg_catalog, pg_temp
as $function$
begin
    -- To look costs half of what composing does, and nearly every text is composed.
    if octet_length(p_text) = length(p_text) or p_text is nfc normalized then
        return lower(p_text);
    end if;
    return lower(normalize(p_text));
end
$function$;

comment on function counterfoil.fold_text(text) is
'A text in lower case with its letters composed (NFC), as searches compare it. Private.';

revoke all on function counterfoil.fold_text(text) from public;
