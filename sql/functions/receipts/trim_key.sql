-- trim_key: a key as the wire means it.
--
-- Promises: without white space at either end, as JavaScript's trim() means it: Unicode's spaces, line ends and U+FEFF too;
--           null for null.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.trim_key(p_key text)
returns text
language sql
immutable
parallel safe
strict
security invoker
as $function$
    select btrim(
        p_key,
        e' \t\n\r\f\x0b\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000\ufeff'
    )
$function$;

comment on function counterfoil.trim_key(text) is
'A key without white space at either end. Private.';

revoke all on function counterfoil.trim_key(text) from public;
