-- check_depth: refuses a JSON document that nests too deep to be read everywhere.
--
-- Promises: returns only when p_document has at most 200 levels of arrays and objects, or is null. What is kept is read by
--           workers and dispatchers, whose parsers give up far earlier than PostgreSQL's: one such document would stop
--           every claim that it is part of.
-- Locks:    nothing.
-- Raises:   RL001 with DETAIL p_where.
-- Since:    1

create or replace function counterfoil.check_depth(p_document jsonb, p_where text)
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
    if
        length(v_text) > 400
        and length(v_text) - length(translate(v_text, '{[', '')) > 200
        and jsonb_path_exists(p_document, 'strict $.**{200} ? (@.type() == "array" || @.type() == "object")')
    then
        perform counterfoil.raise_invalid_argument(
            format('%s nests deeper than 200 levels.', p_where), p_where,
            'Flatten the document, or pass the deep part as a string.'
        );
    end if;
end
$function$;

comment on function counterfoil.check_depth(jsonb, text) is
'Refuses a JSON document with more than 200 levels of arrays and objects (RL001, DETAIL p_where). Private.';

revoke all on function counterfoil.check_depth(jsonb, text) from public;
