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
begin
    return sha256(convert_to(counterfoil.canonical_json(p_document)::text, 'UTF8'));
end
$function$;

comment on function counterfoil.canonical_digest(jsonb) is
'sha256 of a JSON document; key order, white space and number spelling do not matter. Private.';

revoke all on function counterfoil.canonical_digest(jsonb) from public;
