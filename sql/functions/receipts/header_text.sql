-- header_text: a text that may stand in an HTTP header.
--
-- Promises: one line of at most 500 printable ASCII characters, secrets redacted.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.header_text(p_text text)
returns text
language sql
immutable
parallel safe
strict
security invoker
set search_path = pg_catalog, pg_temp
as $function$
    select left(
        regexp_replace(regexp_replace(counterfoil.redact_text(p_text), '[\r\n]+', ' ', 'g'), '[^ -~]', '?', 'g'), 500
    )
$function$;

comment on function counterfoil.header_text(text) is
'A text as one header line: redacted, without line breaks, printable ASCII, at most 500 characters. Private.';

revoke all on function counterfoil.header_text(text) from public;
