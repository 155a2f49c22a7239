-- check_wait: refuses a malformed wait.
--
-- Promises: returns only when reason, event name, wake time and wait id are well formed or null.
-- Locks:    nothing.
-- Raises:   RL001.
-- Since:    1

create or replace function counterfoil.check_wait(
    p_reason text, p_event_name text, p_wake_after interval, p_wait_id text
)
returns void
language plpgsql
volatile
parallel unsafe
called on null input
security invoker
set search_path = pg_catalog, pg_temp
as $function$
begin
    if length(p_reason) > 2000 then
        perform counterfoil.raise_invalid_argument(
            format('p_reason has %s characters; a reason may have 2000.', length(p_reason)), 'p_reason',
            'Give a shorter reason.'
        );
    end if;
    if p_event_name is not null then
        perform counterfoil.check_id(p_event_name, 'p_event_name');
    end if;
    if p_wake_after < interval '0' or p_wake_after > interval '100 years' then
        perform counterfoil.raise_invalid_argument(
            format('p_wake_after is %s; it must lie between 0 and 100 years.', p_wake_after), 'p_wake_after',
            'Give an interval that is not negative, or null to wait without an end.'
        );
    end if;
    if p_wait_id = '' or length(p_wait_id) > 1000 or p_wait_id ~ '[[:cntrl:]]' then
        perform counterfoil.raise_invalid_argument(
            'p_wait_id must have 1 to 1000 characters, none of them a control character.', 'p_wait_id',
            'Name the wait by its place in the play, such as its step key.'
        );
    end if;
end
$function$;

comment on function counterfoil.check_wait(text, text, interval, text) is
'Refuses a malformed reason, event name, wake time or wait id (RL001). Private.';

revoke all on function counterfoil.check_wait(text, text, interval, text) from public;
