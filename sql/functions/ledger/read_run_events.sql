-- read_run_events: a run's history, page by page.
--
-- Promises: the events after position p_after in order, at most p_limit. Positions have no gap, so the last position
--           read is where the next page goes on. Nothing for a run without a ledger.
-- Locks:    nothing.
-- Raises:   RL001 malformed arguments.
-- Since:    1

create or replace function counterfoil.read_run_events(
    p_org_id text,
    p_run_id text,
    p_after bigint default 0,
    p_limit integer default 100
)
returns table (
    "position" bigint,
    event_type text,
    event_id text,
    item integer,
    occurred_at timestamptz,
    event jsonb,
    appended_at timestamptz
)
language plpgsql
stable
parallel safe
called on null input
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
set enable_sort = off
as $function$
begin
    perform counterfoil.check_id(p_org_id, 'p_org_id');
    perform counterfoil.check_id(p_run_id, 'p_run_id');
    perform counterfoil.check_limit(p_limit, 1, 10000, 'p_limit');
    perform counterfoil.check_limit(p_after, 0, 9223372036854775807, 'p_after');

    return query
    select k.position, k.event_type, k.event_id, k.item, k.occurred_at, k.event, k.appended_at
    from counterfoil.ledger_events as k
    where k.org_id = p_org_id and k.run_id = p_run_id and k.position > p_after
    order by k.position
    limit p_limit;
end
$function$;

comment on function counterfoil.read_run_events(text, text, bigint, integer) is
'Events of a run''s ledger after position p_after (0 for the start), in order, at most p_limit (1 to 10000).';

revoke all on function counterfoil.read_run_events(text, text, bigint, integer) from public;
