-- delivery_pieces: cuts the events of a delivery into bounded pieces.
--
-- Promises: pieces 1, 2, … that hold all events in order, each filled until one more event would pass p_max_events or
--           p_max_bytes; an event over the size is a piece of its own. The same for the same events and bounds. No piece
--           for no events.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.delivery_pieces(p_events jsonb, p_max_events integer, p_max_bytes integer)
returns table (chunk integer, events jsonb)
language plpgsql
immutable
parallel safe
called on null input
security invoker
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_chunk integer := 0;
    v_count integer := 0;
    v_bytes integer := 0;
    v_size integer;
    v_sizes integer[];
    v_chunks integer[];
begin
    select array_agg(counterfoil.json_bytes(e.event) order by e.ordinality)
    into v_sizes
    from jsonb_array_elements(p_events) with ordinality as e (event, ordinality);

    -- Where a piece ends depends on where the one before it ended.
    foreach v_size in array coalesce(v_sizes, '{}') loop
        if v_chunk = 0 or v_count >= p_max_events or v_bytes + v_size > p_max_bytes then
            v_chunk := v_chunk + 1;
            v_count := 0;
            v_bytes := 0;
        end if;
        v_count := v_count + 1;
        v_bytes := v_bytes + v_size;
        v_chunks := v_chunks || v_chunk;
    end loop;

    return query
    select c.chunk, jsonb_agg(e.event order by e.ordinality)
    from jsonb_array_elements(p_events) with ordinality as e (event, ordinality)
    inner join unnest(v_chunks) with ordinality as c (chunk, ordinality) on c.ordinality = e.ordinality
    group by c.chunk
    order by c.chunk;
end
$function$;

comment on function counterfoil.delivery_pieces(jsonb, integer, integer) is
'Cuts an array of events into pieces of at most p_max_events and p_max_bytes, in order, always at the same places. Private.';

revoke all on function counterfoil.delivery_pieces(jsonb, integer, integer) from public;
