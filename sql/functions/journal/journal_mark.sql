-- journal_mark: the hash under which entries of an org are found by one trait.
--
-- Promises: the same number for the same org, kind and value. Kinds: word, run, channel, level, day, hour. A trait of one
--           org and the same of another have different marks, so that an index of marks is an index per org.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.journal_mark(p_org_id text, p_kind text, p_value text)
returns bigint
language sql
immutable
parallel safe
called on null input
security invoker
as $function$
    select hashtextextended((p_org_id || E'\x01' || p_kind || E'\x01' || p_value) collate "C", 0)
$function$;

comment on function counterfoil.journal_mark(text, text, text) is
'Hash of org, kind (word, run, channel, level, day, hour) and value: what run_journal.terms is made of. Private.';

revoke all on function counterfoil.journal_mark(text, text, text) from public;
