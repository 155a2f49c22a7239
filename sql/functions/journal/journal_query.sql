-- journal_query: what a query asks for, in terms of the index and of the text.
--
-- Promises: any text is a query. Mode words: an entry must hold every word; what stands in double quotes, or is joined by
--           punctuation (10.0.0.1), must stand there as it is. Mode substring: the whole query must stand there. words are
--           those that a match certainly has as words of its own, 32 at most; needles are folded. Words are
--           taken from the first 10,000 characters; a substring is looked for whole, however long.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.journal_query(p_query text, p_mode text)
returns table (words text[], needles text[])
language plpgsql
immutable
parallel safe
called on null input
security invoker
set search_path = pg_catalog, pg_temp
as $function$
declare
    -- To take a longer text apart would take seconds.
    v_start text := left(coalesce(p_query, ''), 10000);
    v_is_cut boolean := length(p_query) > 10000;
    v_tail text := '';
    v_query text;
    v_split text[];
    v_words text[] := array[]::text[];
    v_needles text[] := array[]::text[];
begin
    if v_is_cut and p_mode = 'words' then
        -- Where a word is cut through, its beginning must stand there.
        v_tail := substring(v_start from '[^\s"]*$');
        v_start := left(v_start, length(v_start) - length(v_tail));
    end if;
    v_query := btrim(v_start, E' \t\r\n');
    if v_query = '' and v_tail = '' and not (v_is_cut and p_mode = 'substring') then
        return query select v_words, v_needles;
        return;
    end if;

    if p_mode = 'substring' then
        v_needles := array[counterfoil.fold_text(p_query)];
        -- The first and the last word may go on in the line; those between end where they end here.
        v_split := counterfoil.journal_words(v_start);
        v_words := v_split[2 : cardinality(v_split) - 1];
    else
        v_words := counterfoil.journal_words(v_query);
        select coalesce(array_agg(distinct p.piece), '{}') into v_needles
        from (
            select counterfoil.fold_text(coalesce(nullif(m.parts[1], ''), m.parts[2])) as piece
            from regexp_matches(v_query, '"([^"]*)"|([^\s"]+)', 'g') as m (parts)
        ) as p
        -- A piece that is one word needs no second look.
        where btrim(p.piece) <> '' and counterfoil.journal_words(p.piece) <> array[p.piece];
        if v_tail <> '' then
            v_needles := v_needles || counterfoil.fold_text(v_tail);
        end if;
    end if;

    select coalesce(array_agg(w.word), '{}') into v_words
    from (
        select u.word
        from unnest(v_words) as u (word)
        where u.word <> ''
        group by u.word
        order by length(u.word) desc, u.word
        limit 32
    ) as w;
    -- Quotes around nothing.
    if cardinality(v_words) = 0 and cardinality(v_needles) = 0 then
        v_needles := array[counterfoil.fold_text(v_query)];
    end if;
    return query select v_words, v_needles;
end
$function$;

comment on function counterfoil.journal_query(text, text) is
'A query as whole words to look up in the index and pieces of text that a line must hold. Private.';

revoke all on function counterfoil.journal_query(text, text) from public;
