-- cut_text: the beginning of a text that fits into so many bytes.
--
-- Promises: the text itself where it has at most p_max_bytes, else as many whole characters of it as fit.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.cut_text(p_text text, p_max_bytes integer)
returns text
language sql
immutable
parallel safe
strict
security invoker
set search_path = pg_catalog, pg_temp
as $function$
    -- In UTF-8 a character goes on as long as a byte begins with the bits 10, for three bytes at most.
    select case
        when octet_length(p_text) <= p_max_bytes then p_text
        else (
            select convert_from(substring(b.bytes for c.fitting), 'UTF8')
            from (select convert_to(left(p_text, p_max_bytes + 1), 'UTF8') as bytes) as b
            cross join lateral (
                select max(n.fitting) as fitting
                from generate_series(greatest(0, p_max_bytes - 3), p_max_bytes) as n (fitting)
                where get_byte(b.bytes, n.fitting) & 192 <> 128
            ) as c
        )
    end
$function$;

comment on function counterfoil.cut_text(text, integer) is
'As many whole characters of a text as fit into p_max_bytes. Private.';

revoke all on function counterfoil.cut_text(text, integer) from public;
