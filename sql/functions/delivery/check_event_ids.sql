-- check_event_ids: refuses a list of facts that names none, or one twice.
--
-- Promises: returns only for 1 to 10,000 distinct event ids.
-- Locks:    nothing.
-- Raises:   RL001 with DETAIL p_event_ids.
-- Since:    1

create or replace function counterfoil.check_event_ids(p_event_ids text[])
returns void
language plpgsql
volatile
parallel unsafe
called on null input
security invoker
set search_path = pg_catalog, pg_temp
as $function$
begin
    if array_ndims(p_event_ids) > 1 then
        perform counterfoil.raise_invalid_argument(
            'p_event_ids is no plain list.', 'p_event_ids', 'Give an array of one dimension.'
        );
    elsif coalesce(cardinality(p_event_ids), 0) not between 1 and 10000 or array_position(p_event_ids, null) is not null then
        perform counterfoil.raise_invalid_argument(
            'p_event_ids names no facts, a null, or more than 10000.', 'p_event_ids', 'Give the event ids of one claimed prefix.'
        );
    elsif (select count(distinct u.event_id) from unnest(p_event_ids) as u (event_id)) <> cardinality(p_event_ids) then
        perform counterfoil.raise_invalid_argument(
            'p_event_ids names a fact twice.', 'p_event_ids', 'Give each event id once.'
        );
    end if;
end
$function$;

comment on function counterfoil.check_event_ids(text[]) is
'Refuses an empty list of event ids, a null in it, or one twice (RL001). Private.';

revoke all on function counterfoil.check_event_ids(text[]) from public;
