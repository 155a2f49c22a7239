-- highlight_line: where in a line the matches of a query stand.
--
-- Promises: [[start, length], …] in characters from 0, in order; 100 at most, in the first 20,000 characters. Empty
--           where lower case has another length than the line, since places could not be told. Letters that are not
--           composed are looked for as they stand.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.highlight_line(p_line text, p_words text[], p_needles text[])
returns jsonb
language plpgsql
immutable
parallel safe
called on null input
security invoker
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_start text := left(p_line, 20000);
    v_line text := counterfoil.fold_text(v_start);
    v_is_decomposed boolean := length(v_line) <> length(v_start);
    v_text text;
    v_pieces text[] := p_needles;
    v_edge text := '';
    v_piece text;
    v_from integer;
    v_at integer;
    v_starts integer[] := array[]::integer[];
    v_lengths integer[] := array[]::integer[];
begin
    if v_is_decomposed then
        v_line := lower(v_start);
        if length(v_line) <> length(v_start) then
            return '[]'::jsonb;
        end if;
    end if;
    v_text := v_line;
    if cardinality(p_needles) = 0 then
        v_pieces := p_words;
        -- Separators are one character each, so that every word stays in its place; but not beside letters of scripts
        -- that have no spaces, which are looked for as they stand.
        v_text := array_to_string(counterfoil.journal_words(v_line), ' ');
        if length(v_text) = length(v_line) and not v_is_decomposed then
            v_edge := ' ';
            v_text := ' ' || v_text || ' ';
        else
            v_text := v_line;
        end if;
    end if;

    foreach v_piece in array v_pieces loop
        if v_is_decomposed then
            v_piece := normalize(v_piece, nfd);
        end if;
        v_from := 1;
        loop
            v_at := strpos(substr(v_text, v_from), v_edge || v_piece || v_edge);
            exit when v_at = 0 or v_piece = '' or cardinality(v_starts) = 100;
            v_starts := v_starts || (v_from + v_at - 2);
            v_lengths := v_lengths || length(v_piece);
            v_from := v_from + v_at - 1 + length(v_edge || v_piece);
        end loop;
    end loop;

    if cardinality(v_starts) = 0 then
        return '[]'::jsonb;
    elsif cardinality(v_starts) = 1 then
        return jsonb_build_array(jsonb_build_array(v_starts[1], v_lengths[1]));
    end if;
    return (
        select jsonb_agg(jsonb_build_array(m.start, m.length) order by m.start, m.length)
        from unnest(v_starts, v_lengths) as m (start, length)
    );
end
$function$;

comment on function counterfoil.highlight_line(text, text[], text[]) is
'Places of a query''s matches in a line: [[start, length], …] in characters from 0. Private.';

revoke all on function counterfoil.highlight_line(text, text[], text[]) from public;
