-- check_document: refuses a JSON document that not everybody could read.
--
-- Promises: returns only when p_document has at most 200 levels of arrays and objects and no number of more than 1000
--           digits, or is null. What is kept is read by workers and dispatchers, whose parsers give up far earlier than
--           PostgreSQL's: one such document would stop every claim that it is part of.
-- Locks:    nothing.
-- Raises:   RL001 with DETAIL p_where.
-- Since:    1

create or replace function counterfoil.check_document(p_document jsonb, p_where text)
returns void
language plpgsql
volatile
parallel safe
called on null input
security invoker
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_text text := p_document::text;
begin
    -- A level takes two characters at least, and a bracket: spares most documents the walk.
    if coalesce(length(v_text), 0) <= 400 then
        return;
    elsif
        length(v_text) - length(translate(v_text, '{[', '')) > 200
        and jsonb_path_exists(p_document, 'strict $.**{200} ? (@.type() == "array" || @.type() == "object")')
    then
        perform counterfoil.raise_invalid_argument(
            format('%s nests deeper than 200 levels.', p_where), p_where,
            'Flatten the document, or pass the deep part as a string.'
        );
    -- 255 is the most that a regular expression can count to; the digits may stand in a string.
    elsif
        v_text ~ '[0-9]{255}'
        and exists (
            select
            from jsonb_path_query(p_document, 'strict $.** ? (@.type() == "number")') as n (item)
            where length(n.item::text) > 1000
        )
    then
        perform counterfoil.raise_invalid_argument(
            format('%s holds a number of more than 1000 digits.', p_where), p_where, 'Pass such a number as a string.'
        );
    end if;
end
$function$;

comment on function counterfoil.check_document(jsonb, text) is
'Refuses a JSON document with more than 200 levels of arrays and objects, or a number of over 1000 digits (RL001, DETAIL p_where). Private.';

revoke all on function counterfoil.check_document(jsonb, text) from public;
