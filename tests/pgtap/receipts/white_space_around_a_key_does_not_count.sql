-- SPEC 12: a key on the wire is meant without the white space around it, and with everything else.
begin;
\ir ../setup.psql
select plan(6);

select is(counterfoil.trim_key(e' \t\n\r\f\x0bkey\x0b\f\r\n\t '), 'key', 'white space goes from both ends');
-- PostgreSQL 15 reads an escape that it does not know as the letter.
select is(counterfoil.trim_key('verify-v'), 'verify-v', 'a letter at either end stays');
-- ECMAScript's WhiteSpace and LineTerminator: no more, no less.
select is(
    counterfoil.trim_key(w.spaces || 'key' || w.spaces), 'key', 'Unicode''s white space goes as well')
from (
    select string_agg(chr(s.code), '') as spaces
    from unnest(array[160, 5760, 8192, 8193, 8194, 8195, 8196, 8197, 8198, 8199, 8200, 8201, 8202, 8232, 8233, 8239, 8287, 12288, 65279]) as s (code)
) as w;
select is(
    (select count(*) from unnest(array[133, 6158, 8203, 8204, 8205, 8288, 28, 31]) as s (code) where counterfoil.trim_key(chr(s.code)) = ''),
    0::bigint, 'what is no white space there stays');
select is(counterfoil.trim_key(e'a \t b'), e'a \t b', 'what lies between stays');
select is(
    (select string_agg(chr(c.code), '' order by c.code) from generate_series(33, 126) as c (code)),
    counterfoil.trim_key((select string_agg(chr(c.code), '' order by c.code) from generate_series(33, 126) as c (code))),
    'no printed character is white space'
);

select * from finish();
rollback;
