-- read_tagged_line: the structured diagnostic in a log line of an older runner.
--
-- Promises: {name, document} for `[diagnostic:NAME] {…}`, a name of up to 64 lower-case characters and a JSON object;
--           null for any other line. Older runners had no other way to send diagnostics than tagged log text.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1
-- allows: exception-block: PostgreSQL 15 has no other way to ask whether text is JSON; only tagged lines come here

create or replace function counterfoil.read_tagged_line(p_line text, out name text, out document jsonb)
returns record
language plpgsql
immutable
parallel safe
strict
security invoker
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_parts text[] := regexp_match(p_line, '^\s*\[diagnostic:([a-z][a-z0-9_-]{0,63})\]\s*(\{.*\})\s*$');
begin
    if v_parts is null then
        return;
    end if;
    document := v_parts[2]::jsonb;
    name := v_parts[1];
exception
    when data_exception then
        document := null;
end
$function$;

comment on function counterfoil.read_tagged_line(text) is
'Name and document of a log line `[diagnostic:NAME] {…}`; null for any other line. Private.';

revoke all on function counterfoil.read_tagged_line(text) from public;
