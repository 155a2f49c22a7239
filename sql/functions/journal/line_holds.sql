-- line_holds: whether a line holds every one of some pieces of text, whatever their case and composition.
--
-- Promises: true where no piece is missing, so true for no pieces. The pieces are folded already (fold_text).
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.line_holds(p_line text, p_needles text[])
returns boolean
language sql
immutable
parallel safe
called on null input
security invoker
as $function$
    select not exists (
        select
        from unnest(p_needles) as n (needle)
        where strpos(
            -- Most lines are plain ASCII, for which this is all there is to fold.
            case when octet_length(p_line) = length(p_line) then lower(p_line) else counterfoil.fold_text(p_line) end,
            n.needle
        ) = 0
    )
$function$;

comment on function counterfoil.line_holds(text, text[]) is
'Whether the line holds every needle (given as fold_text makes it), whatever the case and composition of the line''s letters. Private.';

revoke all on function counterfoil.line_holds(text, text[]) from public;
