-- run_holds: whether a run has a text in its id, play, error or result summary.
--
-- Promises: compares without regard to case and composition; p_text is folded already (fold_text).
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.run_holds(p_run counterfoil.runs, p_text text)
returns boolean
language sql
immutable
parallel safe
called on null input
security invoker
as $function$
    select strpos(
        counterfoil.fold_text(concat_ws(
            E'\n', (p_run).run_id, (p_run).play_name,
            -- The message also as it reads: in the document its quotes and line breaks are escaped.
            (p_run).error ->> 'message', (p_run).error::text, (p_run).result_summary::text
        ) collate "default"),
        p_text
    ) > 0
$function$;

comment on function counterfoil.run_holds(counterfoil.runs, text) is
'Whether a run''s id, play, error or result summary holds a text given as fold_text makes it. Private.';

revoke all on function counterfoil.run_holds(counterfoil.runs, text) from public;
