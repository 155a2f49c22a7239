-- append_facts: records many facts of one run.
--
-- Promises: all or none, in the order given, one row each: a new fact gets the run's next seq, an exact repeat the seq it
--           has. A call that waited for the run's lock comes after whoever it waited for. With p_attempt and p_lease_id
--           it writes only while that lease is the run's live one. An empty array writes nothing.
-- Locks:    the run, for no key update; then its lanes.
-- Raises:   RL001 malformed arguments, with the path of what is wrong; RL002 run_not_found; RL003 an id stands for
--           something else; RL004 attempt_lease_not_current; RL005 written_by_the_run, run_not_started, run_ended;
--           RL008 a fact or the batch is too large.
-- Since:    1

create or replace function counterfoil.append_facts(
    p_org_id text,
    p_run_id text,
    p_facts jsonb,
    p_attempt integer default null,
    p_lease_id text default null
)
returns table (event_id text, recorded boolean, seq bigint)
language plpgsql
volatile
parallel unsafe
called on null input
security definer
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_size integer;
    v_max_facts bigint;
    v_max_bytes bigint;
    v_index bigint;
    v_event_ids text[];
    v_event_types text[];
    v_payloads jsonb[];
    v_plain boolean;
begin
    perform counterfoil.check_id(p_org_id, 'p_org_id');
    perform counterfoil.check_id(p_run_id, 'p_run_id');
    perform counterfoil.check_fact_fence(p_attempt, p_lease_id);
    if p_facts is null or jsonb_typeof(p_facts) <> 'array' then
        perform counterfoil.raise_invalid_argument(
            'p_facts is no JSON array.', 'p_facts', 'Give an array of {eventId, eventType, payload}.'
        );
    end if;

    v_size := jsonb_array_length(p_facts);
    v_max_facts := counterfoil.setting_integer('fact_batch_max');
    if v_size > v_max_facts then
        perform counterfoil.raise_payload_too_large(
            format('p_facts holds %s facts; one call may bring %s.', v_size, v_max_facts),
            'p_facts', 'Make several calls, or raise the setting fact_batch_max.'
        );
    end if;

    select
        array_agg(f.fact ->> 'eventId' order by f.ordinality),
        array_agg(f.fact ->> 'eventType' order by f.ordinality),
        array_agg(f.fact -> 'payload' order by f.ordinality),
        bool_and(
            jsonb_typeof(f.fact -> 'eventId') = 'string' and jsonb_typeof(f.fact -> 'eventType') = 'string'
            and counterfoil.is_plain_fact(f.fact ->> 'eventId', f.fact ->> 'eventType', f.fact -> 'payload')
        )
    into v_event_ids, v_event_types, v_payloads, v_plain
    from jsonb_array_elements(p_facts) with ordinality as f (fact, ordinality);

    if v_plain is distinct from true then
        select f.ordinality - 1
        into v_index
        from jsonb_array_elements(p_facts) with ordinality as f (fact, ordinality)
        where
            jsonb_typeof(f.fact) <> 'object'
            or jsonb_typeof(coalesce(f.fact -> 'eventId', '""'::jsonb)) <> 'string'
            or jsonb_typeof(coalesce(f.fact -> 'eventType', '""'::jsonb)) <> 'string'
        order by f.ordinality
        limit 1;
        if found then
            perform counterfoil.raise_invalid_argument(
                format('p_facts[%s] is no fact.', v_index), format('p_facts[%s]', v_index),
                'Give an object with the strings eventId and eventType and the object payload.'
            );
        end if;

        v_max_bytes := counterfoil.setting_integer('fact_max_bytes');
        perform counterfoil.check_fact(
            f.fact ->> 'eventId', f.fact ->> 'eventType', f.fact -> 'payload', v_max_bytes,
            format('p_facts[%s].eventId', f.ordinality - 1),
            format('p_facts[%s].eventType', f.ordinality - 1),
            format('p_facts[%s].payload', f.ordinality - 1)
        )
        from jsonb_array_elements(p_facts) with ordinality as f (fact, ordinality);
    end if;

    return query
    select v_event_ids[r.ordinal], r.recorded, r.seq
    from counterfoil.record_facts(
        p_org_id, p_run_id, coalesce(v_event_ids, '{}'), coalesce(v_event_types, '{}'), coalesce(v_payloads, '{}'),
        p_attempt, p_lease_id, true
    ) as r
    order by r.ordinal;
end
$function$;

comment on function counterfoil.append_facts(text, text, jsonb, integer, text) is
'Records many facts of one run, all or none: p_facts is an array of {eventId, eventType, payload}. One row each, in order, as append_fact would answer.';

revoke all on function counterfoil.append_facts(text, text, jsonb, integer, text) from public;
