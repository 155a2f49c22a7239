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
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $function$
declare
    v_attempt integer;
    v_now timestamptz;
begin
    -- Asked in the cheapest way first; what breaks a rule is told apart by the functions that explain it.
    if not counterfoil.is_plain_fact(p_event_id, p_event_type, p_payload) then
        perform counterfoil.check_fact(
            p_event_id, p_event_type, p_payload, counterfoil.setting_integer('fact_max_bytes'),
            'p_event_id', 'p_event_type', 'p_payload'
        );
    end if;
    if p_attempt is not null or p_lease_id is not null then
        perform counterfoil.check_fact_fence(p_attempt, p_lease_id);
    end if;

    select r.attempt
    into v_attempt
    from counterfoil.runs as r
    where
        r.org_id = p_org_id and r.run_id = p_run_id
        and counterfoil.fact_refusal(p_event_type, r.started_at is not null, r.terminal_event_id is not null) is null
    for no key update;
    if found then
        v_now := clock_timestamp();
        if p_attempt is not null then
            perform counterfoil.prove_attempt_lease(p_org_id, p_run_id, p_attempt, p_lease_id, v_attempt, v_now);
        end if;
        seq := counterfoil.write_fact(p_org_id, p_run_id, p_event_id, p_event_type, p_payload, v_now);
        if seq is not null then
            recorded := true;
            return next;
            return;
        end if;
    end if;

    perform counterfoil.check_id(p_org_id, 'p_org_id');
    perform counterfoil.check_id(p_run_id, 'p_run_id');
    -- A repeat, or a fact that cannot be appended: which, and why not.
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
