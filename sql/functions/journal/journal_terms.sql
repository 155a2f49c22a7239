-- journal_terms: everything an entry can be found by.
--
-- Promises: the marks of the entry's words, and of its run, channel, level (where it has one), day and hour in
--           UTC. A long line is indexed by its first 500 different words.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.journal_terms(
    p_org_id text,
    p_run_id text,
    p_channel text,
    p_level text,
    p_occurred_at timestamptz,
    p_line text
)
returns bigint[]
language plpgsql
immutable
parallel safe
called on null input
security invoker
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_most integer := 500;
    v_words text[] := counterfoil.journal_words(p_line);
    v_word text;
    v_marks bigint[] := array[]::bigint[];
begin
    if cardinality(v_words) > v_most then
        v_words := array(
            select w.word
            from unnest(v_words) with ordinality as w (word, nth)
            where w.word <> ''
            group by w.word
            order by min(w.nth)
            limit v_most
        );
    end if;
    -- A loop over simple expressions: a query here would be set up anew for every line. A word that comes twice has its
    -- mark twice: the index keeps one, and looking for the other here costs more.
    foreach v_word in array v_words loop
        if v_word <> '' then
            v_marks := v_marks || counterfoil.journal_mark(p_org_id, 'word', v_word);
        end if;
    end loop;

    v_marks := v_marks || array[
        counterfoil.journal_mark(p_org_id, 'run', p_run_id),
        counterfoil.journal_mark(p_org_id, 'channel', p_channel),
        counterfoil.journal_mark(p_org_id, 'day', floor(extract(epoch from p_occurred_at) / 86400)::bigint::text),
        counterfoil.journal_mark(p_org_id, 'hour', floor(extract(epoch from p_occurred_at) / 3600)::bigint::text)
    ];
    if p_level is not null then
        v_marks := v_marks || counterfoil.journal_mark(p_org_id, 'level', lower(p_level));
    end if;
    return v_marks;
end
$function$;

comment on function counterfoil.journal_terms(text, text, text, text, timestamptz, text) is
'Marks under which an entry is found: its first 500 different words, run, channel, level, day and hour. Private.';

revoke all on function counterfoil.journal_terms(text, text, text, text, timestamptz, text) from public;
