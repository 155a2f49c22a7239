-- append_fact: records one fact of a run.
--
-- Promises: the fact gets the run's next seq and waits in its lane; an exact repeat is recorded = false with the seq it
--           has. A call that waited for the run's lock comes after whoever it waited for. With p_attempt and p_lease_id
--           it writes only while that lease is the run's live one.
-- Locks:    the run, for no key update; then its lanes.
-- Raises:   RL001 malformed arguments or payload; RL002 run_not_found; RL003 the id stands for something else;
--           RL004 attempt_lease_not_current; RL005 written_by_the_run, run_not_started, run_ended; RL008 too large.
-- Since:    1

create or replace function counterfoil.append_fact(
    p_org_id text,
    p_run_id text,
    p_event_id text,
    p_event_type text,
    p_payload jsonb,
    p_attempt integer default null,
    p_lease_id text default null
)
returns table (recorded boolean, seq bigint)
language plpgsql
volatile
parallel unsafe
called on null input
security definer
set search_path = pg_catalog, pg_temp
as $function$
begin
    perform counterfoil.check_id(p_org_id, 'p_org_id');
    perform counterfoil.check_id(p_run_id, 'p_run_id');
    perform counterfoil.check_fact(
        p_event_id, p_event_type, p_payload, counterfoil.setting_integer('fact_max_bytes'),
        'p_event_id', 'p_event_type', 'p_payload'
    );
    perform counterfoil.check_fact_fence(p_attempt, p_lease_id);

    return query
    select r.recorded, r.seq
    from counterfoil.record_facts(
        p_org_id, p_run_id, array[p_event_id], array[p_event_type], array[p_payload], p_attempt, p_lease_id, false
    ) as r;
end
$function$;

comment on function counterfoil.append_fact(text, text, text, text, jsonb, integer, text) is
'Records one fact of a run: recorded is true, or false for an exact repeat; seq is its place in the run. p_attempt and p_lease_id, given together, fence a worker''s writes.';

revoke all on function counterfoil.append_fact(text, text, text, text, jsonb, integer, text) from public;
