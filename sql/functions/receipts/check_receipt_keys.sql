-- check_receipt_keys: refuses keys that are no keys.
--
-- Promises: returns only when p_keys has no more keys than receipt_batch_max, each of 1 to 1000 characters (1800 bytes)
--           without control characters.
-- Locks:    nothing.
-- Raises:   RL001 with DETAIL such as p_keys[3], counted from 0; RL008 for too many.
-- Since:    1

create or replace function counterfoil.check_receipt_keys(p_keys text[], p_where text)
returns void
language plpgsql
stable
parallel safe
called on null input
security invoker
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_index bigint;
    v_most bigint;
begin
    if p_keys is null then
        perform counterfoil.raise_invalid_argument(format('%s is missing.', p_where), p_where, 'Give an array, empty for nothing.');
    end if;
    if cardinality(p_keys) > 1 then
        v_most := counterfoil.setting_integer('receipt_batch_max');
        if cardinality(p_keys) > v_most then
            perform counterfoil.raise_payload_too_large(
                format('%s holds %s receipts.', p_where, cardinality(p_keys)), p_where,
                format('One call may touch %s receipts (setting receipt_batch_max).', v_most)
            );
        end if;
    end if;

    select k.ordinality - 1
    into v_index
    from unnest(p_keys) with ordinality as k (key, ordinality)
    where not counterfoil.is_receipt_key(k.key)
    order by k.ordinality
    limit 1;
    if found then
        perform counterfoil.raise_invalid_argument(
            format('%s[%s] is no receipt key.', p_where, v_index), format('%s[%s]', p_where, v_index),
            counterfoil.receipt_key_hint()
        );
    end if;
end
$function$;

comment on function counterfoil.check_receipt_keys(text[], text) is
'Refuses too many keys (RL008) or a malformed one (RL001, DETAIL p_where with its index). Private.';

revoke all on function counterfoil.check_receipt_keys(text[], text) from public;
