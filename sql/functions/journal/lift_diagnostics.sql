-- lift_diagnostics: a document with what tagged log lines say as fields.
--
-- Promises: p_document with a member diagnostics: one field for each `[diagnostic:NAME] {…}` among the lines, the last of
--           a name counts; fields that are there already stay as they are. Unchanged where no line is tagged.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.lift_diagnostics(p_document jsonb, p_lines jsonb)
returns jsonb
language plpgsql
immutable
parallel safe
called on null input
security invoker
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_lifted jsonb;
    v_known jsonb := p_document -> 'diagnostics';
begin
    select jsonb_object_agg(t.name, t.document order by l.ordinality) into v_lifted
    from jsonb_array_elements(case jsonb_typeof(p_lines) when 'array' then p_lines else '[]' end)
        with ordinality as l (value, ordinality)
    cross join lateral counterfoil.read_tagged_line(l.value #>> '{}') as t
    where l.value #>> '{}' like '%[diagnostic:%' and t.name is not null;

    if v_lifted is null or jsonb_typeof(v_known) <> 'object' then
        return p_document;
    end if;
    return p_document || jsonb_build_object('diagnostics', v_lifted || coalesce(v_known, '{}'));
end
$function$;

comment on function counterfoil.lift_diagnostics(jsonb, jsonb) is
'The document with what tagged log lines say as fields of its member diagnostics. Private.';

revoke all on function counterfoil.lift_diagnostics(jsonb, jsonb) from public;
