-- line_holds: whether a line holds every one of some pieces of text, whatever their case.
--
-- Promises: true where no piece is missing, so true for no pieces. The pieces are in lower case already.
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
    select not exists (select from unnest(p_needles) as n (needle) where strpos(lower(p_line), n.needle) = 0)
$function$;

comment on function counterfoil.line_holds(text, text[]) is
'Whether the line holds every needle (given in lower case); the case of the line does not matter. Private.';

revoke all on function counterfoil.line_holds(text, text[]) from public;
