-- canonical_digest: the identity of a JSON document.
--
-- Promises: sha256 of its canonical form; null for null.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.canonical_digest(p_document jsonb)
returns bytea
language plpgsql
stable
parallel safe
strict
security invoker
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_text text := p_document::text;
begin
    -- Few documents hold a number that ends in a zero behind its point. In the text of a jsonb a number stands at the
    -- beginning, behind a bracket, or behind a space.
    if v_text ~ '(^|[ \[])-?[0-9]+\.[0-9]*0($|[^0-9])' then
        v_text := counterfoil.canonical_json(p_document)::text;
    end if;
    return sha256(convert_to(v_text, 'UTF8'));
end
$function$;

comment on function counterfoil.canonical_digest(jsonb) is
'sha256 of a JSON document; key order, white space and number spelling do not matter. Private.';

revoke all on function counterfoil.canonical_digest(jsonb) from public;
