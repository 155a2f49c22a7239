-- journal_words: the words of a text, folded, in their order, empty where separators meet.
--
-- Promises: splits at spaces and punctuation but for the underscore, in any script and whatever the database's locale.
--           Scripts that put no space between words (Chinese, Japanese, Korean, Thai, Lao, Khmer, Burmese) are split into
--           letters. Colours and cursor moves of a terminal separate, and so do marks of writing direction. Elements are ''
--           between two separators and at an end where a separator stands.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.journal_words(p_text text)
returns text[]
language plpgsql
immutable
parallel safe
strict
security invoker
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_text text := counterfoil.fold_text(p_text);
begin
    if strpos(v_text, E'\x1b') > 0 then
        v_text := regexp_replace(v_text, E'\x1b\\[[0-?]*[ -/]*[@-~]', ' ', 'g');
    end if;
    -- plpgsql, because it keeps its plan for the session. The short list for plain ASCII: translate() compares every
    -- character with the whole list.
    if octet_length(v_text) = length(v_text) then
        return string_to_array(
            translate(v_text, E' !"#$%&''()*+,-./:;<=>?@[\\]^`{|}~\t\r\n\x0b\x0c', '                                     '),
            ' '
        );
    end if;
    return string_to_array(
        translate(
            regexp_replace(
                v_text,
                '([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u2fff\u3040-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff'
                || '\U00020000-\U0003fffd])',
                ' \1 ', 'g'
            ),
            E' !"#$%&''()*+,-./:;<=>?@[\\]^`{|}~\t\r\n\x0b\x0c«»‹›“”„‟‘’‚‛…‥′″‐‑‒–—―·•¡¿§¶†‡،؛؟۔।॥՝՞։׃፡።፣፤፥፦፧'
            || E'、。「」『』《》〈〉【】〔〕（），．：；？！［］｛｝／～＝＋＊＆％＃＠｜＜＞・\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005'
            || E'\u2006\u2007\u2008\u2009\u200a\u200b\u2028\u2029\u202f\u205f\u3000\ufeff'
            || E'\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069',
            repeat(' ', 200)
        ),
        ' '
    );
end
$function$;

comment on function counterfoil.journal_words(text) is
'Words of a text, folded, split at spaces and punctuation, letter by letter where a script has no spaces; '''' between adjoining separators. Private.';

revoke all on function counterfoil.journal_words(text) from public;
