-- SPEC 12: a key on the wire is meant without the white space around it, and with everything else.
begin;
\ir ../setup.psql
select plan(4);

select is(counterfoil.trim_key(e' \t\n\r\f\x0bkey\x0b\f\r\n\t '), 'key', 'white space goes from both ends');
-- PostgreSQL 15 reads an escape that it does not know as the letter.
select is(counterfoil.trim_key('verify-v'), 'verify-v', 'a letter at either end stays');
select is(counterfoil.trim_key(e'a \t b'), e'a \t b', 'what lies between stays');
select is(
    (select string_agg(chr(c.code), '' order by c.code) from generate_series(33, 126) as c (code)),
    counterfoil.trim_key((select string_agg(chr(c.code), '' order by c.code) from generate_series(33, 126) as c (code))),
    'no printed character is white space'
);

select * from finish();
rollback;
