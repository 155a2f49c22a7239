-- check_delivery_error: refuses what does not describe a failed delivery.
--
-- Promises: returns only for {message, code, status, retryable, eventId}, where message is a string that is not empty and
--           the others, if present, are a string, a number, a boolean and a string.
-- Locks:    nothing.
-- Raises:   RL001 with DETAIL such as p_error.retryable.
-- Since:    1

create or replace function counterfoil.check_delivery_error(p_error jsonb)
returns void
language plpgsql
volatile
parallel unsafe
called on null input
security invoker
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_field text;
begin
    if p_error is null or jsonb_typeof(p_error) <> 'object' then
        perform counterfoil.raise_invalid_argument(
            'p_error is no JSON object.', 'p_error', 'Give {message, code, status, retryable, eventId}.'
        );
    end if;

    v_field := case
        when jsonb_typeof(p_error -> 'message') is distinct from 'string' or p_error ->> 'message' = '' then 'message'
        when jsonb_typeof(coalesce(p_error -> 'code', 'null')) not in ('null', 'string') then 'code'
        when jsonb_typeof(coalesce(p_error -> 'status', 'null')) not in ('null', 'number') then 'status'
        when jsonb_typeof(coalesce(p_error -> 'retryable', 'null')) not in ('null', 'boolean') then 'retryable'
        when jsonb_typeof(coalesce(p_error -> 'eventId', 'null')) not in ('null', 'string') then 'eventId'
    end;
    if v_field is not null then
        perform counterfoil.raise_invalid_argument(
            format('p_error.%s is missing or of the wrong type.', v_field), format('p_error.%s', v_field),
            'message is a text and required; code and eventId are texts, status a number, retryable a boolean.'
        );
    end if;
end
$function$;

comment on function counterfoil.check_delivery_error(jsonb) is
'Refuses anything but {message, code, status, retryable, eventId} (RL001). Private.';

revoke all on function counterfoil.check_delivery_error(jsonb) from public;
