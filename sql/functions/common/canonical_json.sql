-- canonical_json: one spelling for equal JSON documents.
--
-- Promises: documents that differ only in key order, white space or number spelling (1, 1.0, 1e0) come out equal.
--           jsonb has settled all but trailing zeros; the walk happens only where one can be present.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.canonical_json(p_document jsonb)
returns jsonb
language plpgsql
stable
parallel safe
strict
security invoker
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_canonical jsonb;
begin
    if p_document::text !~ '\.[0-9]*0($|[^0-9])' then
        return p_document;
    end if;

    case jsonb_typeof(p_document)
        when 'number' then
            v_canonical := to_jsonb(trim_scale((p_document #>> '{}')::numeric));
        when 'object' then
            select jsonb_object_agg(e.key, counterfoil.canonical_json(e.value))
            into v_canonical
            from jsonb_each(p_document) as e;
        when 'array' then
            select jsonb_agg(counterfoil.canonical_json(e.value) order by e.ordinality)
            into v_canonical
            from jsonb_array_elements(p_document) with ordinality as e (value, ordinality);
        else
            v_canonical := p_document;
    end case;

    return v_canonical;
end
$function$;

comment on function counterfoil.canonical_json(jsonb) is
'The document with every number in its shortest spelling, so that equal documents are equal as text. Private.';

revoke all on function counterfoil.canonical_json(jsonb) from public;
