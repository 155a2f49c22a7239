-- wire_lease_ids: the lease ids that a request gives, one for each key.
--
-- Promises: leaseIds where the request has that list, else its leaseId for every key; null elements where there is none.
-- Locks:    nothing.
-- Raises:   RL001 leaseIds for a list that does not align with the keys or holds something else than strings.
-- Since:    1

create or replace function counterfoil.wire_lease_ids(p_body jsonb, p_keys text[])
returns text[]
language plpgsql
volatile
parallel safe
called on null input
security invoker
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_lease_ids text[];
begin
    if jsonb_typeof(p_body -> 'leaseIds') = 'array' then
        if
            jsonb_array_length(p_body -> 'leaseIds') <> cardinality(p_keys)
            or jsonb_path_exists(p_body -> 'leaseIds', '$[*] ? (@.type() != "string" && @.type() != "null")')
        then
            perform counterfoil.raise_invalid_argument(
                'leaseIds must align with keys.', 'leaseIds', 'Give one lease id, a string, for each key.'
            );
        end if;
        select array_agg(nullif(l.lease_id, '') order by l.ordinality)
        into v_lease_ids
        from jsonb_array_elements_text(p_body -> 'leaseIds') with ordinality as l (lease_id, ordinality);
        return coalesce(v_lease_ids, '{}');
    end if;

    return array_fill(
        case when jsonb_typeof(p_body -> 'leaseId') = 'string' then nullif(p_body ->> 'leaseId', '') end,
        array[cardinality(p_keys)]
    );
end
$function$;

comment on function counterfoil.wire_lease_ids(jsonb, text[]) is
'The lease ids of a receipt request, one for each key. Private.';

revoke all on function counterfoil.wire_lease_ids(jsonb, text[]) from public;
