-- highlight_line: where in a line the matches of a query stand.
--
-- Promises: [[start, length], …] in characters from 0, in order; at most 100, found in the first 20,000 characters. Empty
--           where lower case has another length than the line, since places could not be told.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.highlight_line(p_line text, p_words text[], p_needles text[])
returns jsonb
language sql
immutable
parallel safe
called on null input
security invoker
set search_path = pg_catalog, pg_temp
as $function$
    with lines as (
        select lower(left(p_line, 20000)) as line
        where length(lower(left(p_line, 20000))) = length(left(p_line, 20000))
    ),

    -- Every cut removes what it cuts at: where a piece begins follows from the lengths before it.
    cuts as (
        select
            n.needle,
            sum(length(c.piece) + length(n.needle)) over (
                partition by n.needle order by c.ordinality
            ) - length(n.needle) as start,
            count(*) over (partition by n.needle) as pieces,
            c.ordinality as piece
        from lines as l
        cross join lateral (
            select u.needle from unnest(p_needles) as u (needle)
            union
            select u.word from unnest(p_words) as u (word) where octet_length(u.word) > length(u.word) and length(u.word) = 1
        ) as n
        cross join lateral unnest(string_to_array(l.line, n.needle)) with ordinality as c (piece, ordinality)
        where n.needle <> ''
    ),

    -- Words by their separators, which are one character each, so that every place stays what it is.
    tokens as (
        select
            t.word,
            sum(length(t.word) + 1) over (order by t.ordinality) - length(t.word) - 1 as start
        from lines as l
        cross join lateral unnest(counterfoil.journal_words(l.line)) with ordinality as t (word, ordinality)
        where cardinality(counterfoil.journal_words(l.line)) <= 20001
            and length(array_to_string(counterfoil.journal_words(l.line), ' ')) = length(l.line)
    ),

    marks as (
        select c.start, length(c.needle) as length
        from cuts as c
        where c.piece < c.pieces
        union
        select t.start, length(t.word)
        from tokens as t
        where t.word <> '' and t.word = any (p_words) and cardinality(p_needles) = 0
    )

    select coalesce(jsonb_agg(jsonb_build_array(m.start, m.length) order by m.start, m.length), '[]')
    from (
        select k.start, k.length
        from marks as k
        order by k.start, k.length
        limit 100
    ) as m
$function$;

comment on function counterfoil.highlight_line(text, text[], text[]) is
'Places of a query''s matches in a line: [[start, length], …] in characters from 0. Private.';

revoke all on function counterfoil.highlight_line(text, text[], text[]) from public;
