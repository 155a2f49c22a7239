-- wire_attempt: the attempt that a request names.
--
-- Promises: the number; null for anything that is no number.
-- Locks:    nothing.
-- Raises:   RL001 runAttempt for a number that is no attempt, such as 1.5.
-- Since:    1

create or replace function counterfoil.wire_attempt(p_value jsonb)
returns integer
language plpgsql
volatile
parallel safe
called on null input
security invoker
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_attempt text;
begin
    if jsonb_typeof(p_value) is distinct from 'number' then
        return null;
    end if;
    -- To JavaScript 1.0 is 1.
    v_attempt := trim_scale((p_value #>> '{}')::numeric)::text;
    if v_attempt !~ '^[0-9]{1,9}$' then
        perform counterfoil.raise_invalid_argument(
            'runAttempt is no attempt.', 'runAttempt', 'Give the whole number of the attempt, or leave it out.'
        );
    end if;

    return v_attempt::integer;
end
$function$;

comment on function counterfoil.wire_attempt(jsonb) is
'The attempt that a receipt request names, or null. Private.';

revoke all on function counterfoil.wire_attempt(jsonb) from public;
