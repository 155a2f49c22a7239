-- facts_by_lane: what new facts mean for the lanes of their runs.
--
-- Promises: one row for each run and lane among the facts given, in that order: where the facts begin and end, and the
--           last terminal and public wait among them, or null.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.facts_by_lane(
    p_run_ids text[],
    p_seqs bigint[],
    p_event_types text[],
    p_payloads jsonb[]
)
returns table (run_id text, lane text, first_seq bigint, last_seq bigint, terminal_seq bigint, wait_seq bigint)
language sql
immutable
parallel safe
called on null input
security invoker
as $function$
    select
        n.run_id,
        n.lane,
        min(n.seq),
        max(n.seq),
        max(n.seq) filter (where counterfoil.event_kind(n.event_type) = 'terminal'),
        max(n.seq) filter (where counterfoil.is_public_wait(n.event_type, n.payload))
    from (
        select g.run_id, counterfoil.fact_lane(g.payload) as lane, g.seq, g.event_type, g.payload
        from unnest(p_run_ids, p_seqs, p_event_types, p_payloads) as g (run_id, seq, event_type, payload)
    ) as n
    group by n.run_id, n.lane
    order by n.run_id, n.lane
$function$;

comment on function counterfoil.facts_by_lane(text[], bigint[], text[], jsonb[]) is
'First and last position, last terminal and last public wait of facts (parallel arrays), for each of their runs and lanes. Private.';

revoke all on function counterfoil.facts_by_lane(text[], bigint[], text[], jsonb[]) from public;
