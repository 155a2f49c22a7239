-- journal_terms: everything an entry can be found by.
--
-- Promises: the marks of the entry's words, and of its run, channel, level (where it has one), day and hour in
--           UTC. A long line is indexed by its first 500 words.
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
language sql
immutable
parallel safe
called on null input
security invoker
as $function$
    -- A word that comes twice has its mark twice: the index keeps one, and looking for the other here costs more.
    select array(
        select counterfoil.journal_mark(p_org_id, 'word', w.word)
        from unnest(counterfoil.journal_words(p_line)) as w (word)
        where w.word <> ''
        limit 500
    ) || array[
        counterfoil.journal_mark(p_org_id, 'run', p_run_id),
        counterfoil.journal_mark(p_org_id, 'channel', p_channel),
        counterfoil.journal_mark(p_org_id, 'day', floor(extract(epoch from p_occurred_at) / 86400)::bigint::text),
        counterfoil.journal_mark(p_org_id, 'hour', floor(extract(epoch from p_occurred_at) / 3600)::bigint::text)
    ] || case
        when p_level is null then '{}'::bigint[] else array[counterfoil.journal_mark(p_org_id, 'level', lower(p_level))]
    end
$function$;

comment on function counterfoil.journal_terms(text, text, text, text, timestamptz, text) is
'Marks under which an entry is found: its first 500 words, run, channel, level, day and hour. Private.';

revoke all on function counterfoil.journal_terms(text, text, text, text, timestamptz, text) from public;
