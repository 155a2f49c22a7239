-- wire_lease_ids: the lease ids that a request gives, one for each key.
--
-- Promises: a request for many keys gives leaseIds, in a heartbeat also one leaseId for every key; one for a single key gives
--           leaseId, and a list beside it means nothing. Null elements where there is none. In the list a number stands for
--           its digits; in a heartbeat anything stands for its text, so that what cannot be a lease id proves nothing.
-- Locks:    nothing.
-- Raises:   RL001 leaseIds for a list that does not align with the keys; leaseIds[n], counted from 0, for an element that is
--           no lease id.
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
    v_is_heartbeat boolean := p_body ->> 'action' = 'heartbeat_runtime_step_receipts';
    v_lease_ids text[];
    v_index bigint;
begin
    if jsonb_typeof(p_body -> 'leaseIds') = 'array' and p_body ->> 'action' <> 'claim_runtime_step_receipt' then
        if jsonb_array_length(p_body -> 'leaseIds') <> cardinality(p_keys) then
            perform counterfoil.raise_invalid_argument(
                'leaseIds must align with keys.', 'leaseIds', 'Give one lease id, a string, for each key.'
            );
        end if;
        select l.ordinality - 1
        into v_index
        from jsonb_array_elements(p_body -> 'leaseIds') with ordinality as l (lease_id, ordinality)
        where
            (jsonb_typeof(l.lease_id) not in ('string', 'number', 'null') and not v_is_heartbeat)
            or length(l.lease_id #>> '{}') > 200
        order by l.ordinality
        limit 1;
        if found then
            perform counterfoil.raise_invalid_argument(
                format('leaseIds[%s] is no lease id.', v_index), format('leaseIds[%s]', v_index),
                'A lease id is a string of 1 to 200 characters; null means that there is none.'
            );
        end if;
        select array_agg(nullif(l.lease_id, '') order by l.ordinality)
        into v_lease_ids
        from jsonb_array_elements_text(p_body -> 'leaseIds') with ordinality as l (lease_id, ordinality);
        return coalesce(v_lease_ids, '{}');
    end if;

    return array_fill(
        case
            when
                v_is_heartbeat
                or (p_body ->> 'action' = 'claim_runtime_step_receipt' and jsonb_typeof(p_body -> 'leaseId') = 'string')
                then nullif(p_body ->> 'leaseId', '')
        end,
        array[cardinality(p_keys)]
    );
end
$function$;

comment on function counterfoil.wire_lease_ids(jsonb, text[]) is
'The lease ids of a receipt request, one for each key. Private.';

revoke all on function counterfoil.wire_lease_ids(jsonb, text[]) from public;
