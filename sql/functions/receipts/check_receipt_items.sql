-- check_receipt_items: refuses a list of receipt writes that is malformed.
--
-- Promises: returns only when p_receipts is an array of at most receipt_batch_max objects, each with a key and, where
--           given, a lease id that is a string, an attempt that is a whole number from 0, and a ttlSeconds that can be one.
-- Locks:    nothing.
-- Raises:   RL001 with DETAIL such as p_receipts[3].leaseId, counted from 0; RL008 for too many.
-- Since:    1

create or replace function counterfoil.check_receipt_items(p_receipts jsonb)
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
    v_field text;
    v_most bigint;
begin
    if p_receipts is null or jsonb_typeof(p_receipts) <> 'array' then
        perform counterfoil.raise_invalid_argument(
            'p_receipts is no array.', 'p_receipts', 'Give an array of objects with key, leaseId and runAttempt.'
        );
    end if;
    if jsonb_array_length(p_receipts) > 1 then
        v_most := counterfoil.setting_integer('receipt_batch_max');
        if jsonb_array_length(p_receipts) > v_most then
            perform counterfoil.raise_payload_too_large(
                format('p_receipts holds %s receipts.', jsonb_array_length(p_receipts)), 'p_receipts',
                format('One call may touch %s receipts (setting receipt_batch_max).', v_most)
            );
        end if;
    end if;

    select w.index, w.field
    into v_index, v_field
    from (
        select i.ordinality - 1 as index, case
            when jsonb_typeof(i.item) <> 'object' then ''
            when jsonb_typeof(i.item -> 'key') is distinct from 'string' then '.key'
            when not counterfoil.is_receipt_key(i.item ->> 'key') then '.key'
            when
                coalesce(jsonb_typeof(i.item -> 'leaseId'), 'null') not in ('null', 'string')
                or length(i.item ->> 'leaseId') not between 1 and 200
                then '.leaseId'
            when
                coalesce(jsonb_typeof(i.item -> 'runAttempt'), 'null') not in ('null', 'number')
                or i.item ->> 'runAttempt' !~ '^[0-9]{1,9}$'
                then '.runAttempt'
            when not counterfoil.is_ttl(i.item -> 'ttlSeconds') then '.ttlSeconds'
        end as field
        from jsonb_array_elements(p_receipts) with ordinality as i (item, ordinality)
    ) as w
    where w.field is not null
    order by w.index
    limit 1;
    if v_field = '.ttlSeconds' then
        perform counterfoil.check_ttl(p_receipts -> v_index::integer -> 'ttlSeconds', format('p_receipts[%s].ttlSeconds', v_index));
    elsif found then
        perform counterfoil.raise_invalid_argument(
            format('p_receipts[%s]%s is missing or malformed.', v_index, v_field),
            format('p_receipts[%s]%s', v_index, v_field),
            case v_field
                when '.key' then counterfoil.receipt_key_hint()
                when '.leaseId' then 'Give the lease id of the claim, a string of 1 to 200 characters, or leave it out.'
                when '.runAttempt' then 'Give the number of the attempt that claimed the receipt, or leave it out.'
                else 'Give an object with key, leaseId and runAttempt.'
            end
        );
    end if;
end
$function$;

comment on function counterfoil.check_receipt_items(jsonb) is
'Refuses a malformed list of receipt writes (RL001, DETAIL the JSON path) or too long a one (RL008). Private.';

revoke all on function counterfoil.check_receipt_items(jsonb) from public;
