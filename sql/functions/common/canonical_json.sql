-- canonical_json: one spelling for equal JSON documents.
--
-- Promises: documents that differ only in key order, white space or number spelling (1, 1.0, 1e0) come out equal.
--           jsonb has settled all but trailing zeros, which are taken away.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.canonical_json(p_document jsonb)
returns jsonb
language plpgsql
immutable
parallel safe
strict
security invoker
set search_path = pg_catalog, pg_temp
as $function$
begin
    -- On the text, where a string is stepped over as a whole: a walk by recursion ends at the depth of the stack.
    return regexp_replace(
        p_document::text, '("(?:[^"\\]|\\.)*")|(\.[0-9]*[1-9])0+(?![0-9])|\.0+(?![0-9])', '\1\2', 'g'
    )::jsonb;
end
$function$;

comment on function counterfoil.canonical_json(jsonb) is
'The document with every number in its shortest spelling, so that equal documents are equal as text. Private.';

revoke all on function counterfoil.canonical_json(jsonb) from public;
