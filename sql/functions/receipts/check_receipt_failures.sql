-- check_receipt_failures: refuses failures that do not say how.
--
-- Promises: returns only when each item's failureKind is repairable or terminal, or absent (terminal), its error a string
--           or absent, and its errorPayload an object or absent.
-- Locks:    nothing.
-- Raises:   RL001 with DETAIL such as p_receipts[3].failureKind, counted from 0.
-- Since:    1

create or replace function counterfoil.check_receipt_failures(p_receipts jsonb)
returns void
language plpgsql
volatile
parallel safe
called on null input
security invoker
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_index bigint;
    v_field text;
begin
    select w.index, w.field
    into v_index, v_field
    from (
        select i.ordinality - 1 as index, case
            when
                coalesce(jsonb_typeof(i.item -> 'failureKind'), 'null') not in ('null', 'string')
                or i.item ->> 'failureKind' not in ('repairable', 'terminal')
                then 'failureKind'
            when coalesce(jsonb_typeof(i.item -> 'error'), 'null') not in ('null', 'string') then 'error'
            when coalesce(jsonb_typeof(i.item -> 'errorPayload'), 'null') not in ('null', 'object') then 'errorPayload'
        end as field
        from jsonb_array_elements(p_receipts) with ordinality as i (item, ordinality)
    ) as w
    where w.field is not null
    order by w.index
    limit 1;
    if found then
        perform counterfoil.raise_invalid_argument(
            format('p_receipts[%s].%s is malformed.', v_index, v_field), format('p_receipts[%s].%s', v_index, v_field),
            'failureKind is repairable or terminal, error a string, errorPayload an object.'
        );
    end if;
end
$function$;

comment on function counterfoil.check_receipt_failures(jsonb) is
'Refuses receipt failures with a malformed failureKind, error or errorPayload (RL001, DETAIL the JSON path). Private.';

revoke all on function counterfoil.check_receipt_failures(jsonb) from public;
