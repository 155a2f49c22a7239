-- settle_delivery_failure: charges a failed delivery and gives the lease back.
--
-- Promises: one row for each fact given, in order. A fact under the live lease of p_lease_owner is charged one attempt and
--           is retrying, with backoff and jitter, or blocked when the error is not retryable or delivery_max_attempts are
--           used up; all that retry become due together, at the latest of their times. When p_error names an eventId only
--           that fact is charged and the others are free again at once. A fact that is not under the lease is not_owned
--           and untouched. A frozen receipt stays frozen.
-- Locks:    the lane, for no key update.
-- Raises:   RL001 malformed arguments, or facts of two lanes.
-- Since:    1

create or replace function counterfoil.settle_delivery_failure(
    p_org_id text,
    p_run_id text,
    p_event_ids text[],
    p_lease_owner text,
    p_error jsonb
)
returns table (event_id text, outcome text, next_attempt_at timestamptz)
language plpgsql
volatile
parallel unsafe
called on null input
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $function$
declare
    v_lanes text[];
    v_lane record;
    v_now timestamptz;
    v_error jsonb;
    v_is_final boolean;
    v_max_attempts bigint;
    v_base_ms bigint;
    v_max_ms bigint;
    v_jitter double precision;
    v_retry_at timestamptz;
begin
    perform counterfoil.check_id(p_org_id, 'p_org_id');
    perform counterfoil.check_id(p_run_id, 'p_run_id');
    perform counterfoil.check_id(p_lease_owner, 'p_lease_owner');
    perform counterfoil.check_event_ids(p_event_ids);
    perform counterfoil.check_delivery_error(p_error);
    if not coalesce(p_error ->> 'eventId' = any(p_event_ids), true) then
        perform counterfoil.raise_invalid_argument(
            'p_error.eventId is none of these facts.', 'p_error.eventId', 'Name one of p_event_ids, or none.'
        );
    end if;

    select array_agg(distinct o.lane)
    into v_lanes
    from unnest(p_event_ids) as g (event_id)
    inner join counterfoil.outbox as o on o.org_id = p_org_id and o.event_id = g.event_id and o.run_id = p_run_id;
    if cardinality(v_lanes) > 1 then
        perform counterfoil.raise_invalid_argument(
            'These facts wait in two lanes.', 'p_event_ids', 'Settle the facts of one lane.'
        );
    end if;

    select l.head_seq, l.lease_owner, l.lease_expires_at, l.lease_through_seq
    into v_lane
    from counterfoil.lanes as l
    where l.org_id = p_org_id and l.run_id = p_run_id and l.lane = v_lanes[1]
    order by l.head_seq desc
    limit 1
    for no key update;
    v_now := clock_timestamp();

    if not coalesce(v_lane.lease_owner = p_lease_owner and v_lane.lease_expires_at > v_now, false) then
        return query
        select g.event_id, 'not_owned', null::timestamptz
        from unnest(p_event_ids) with ordinality as g (event_id, ordinality)
        order by g.ordinality;
        return;
    end if;

    v_is_final := p_error -> 'retryable' = 'false'::jsonb;
    v_error := jsonb_strip_nulls(jsonb_build_object(
        'message', left(counterfoil.redact_text(p_error ->> 'message'), 500),
        'code', left(p_error ->> 'code', 200),
        'status', p_error -> 'status',
        'retryable', not coalesce(v_is_final, false)
    ));
    v_max_attempts := counterfoil.setting_integer('delivery_max_attempts');
    v_base_ms := counterfoil.setting_integer('delivery_backoff_base_ms');
    v_max_ms := counterfoil.setting_integer('delivery_backoff_max_ms');
    v_jitter := random();

    insert into counterfoil.fact_failures as x (
        org_id, run_id, seq, lane, event_id, state, attempts, next_attempt_at, blocked_at,
        last_error, first_failed_at, last_failed_at
    )
    select
        p_org_id, p_run_id, c.seq, v_lanes[1], c.event_id,
        case when c.is_blocked then 'blocked' else 'retrying' end,
        c.attempts,
        -- Half of the wait is fixed, half is chance.
        case when not c.is_blocked then v_now + make_interval(
            secs => least(v_max_ms, v_base_ms * power(2, least(c.attempts - 1, 40))) * (0.5 + v_jitter / 2) / 1000
        ) end,
        case when c.is_blocked then v_now end,
        v_error, v_now, v_now
    from (
        select
            o.seq,
            o.event_id,
            coalesce(b.attempts, 0) + 1 as attempts,
            coalesce(v_is_final, false) or coalesce(b.attempts, 0) + 1 >= v_max_attempts as is_blocked
        from unnest(p_event_ids) as g (event_id)
        inner join counterfoil.outbox as o on o.org_id = p_org_id and o.event_id = g.event_id
        left join counterfoil.fact_failures as b on b.org_id = p_org_id and b.run_id = p_run_id and b.seq = o.seq
        where
            o.run_id = p_run_id and o.lane = v_lanes[1]
            and o.seq between v_lane.head_seq and v_lane.lease_through_seq
            and coalesce(p_error ->> 'eventId', g.event_id) = g.event_id
    ) as c
    on conflict on constraint fact_failures_pkey do update
    set
        state = excluded.state,
        attempts = excluded.attempts,
        next_attempt_at = excluded.next_attempt_at,
        blocked_at = excluded.blocked_at,
        last_error = excluded.last_error,
        last_failed_at = excluded.last_failed_at;

    -- One deadline for what failed together.
    select max(x.next_attempt_at)
    into v_retry_at
    from counterfoil.fact_failures as x
    where
        x.org_id = p_org_id and x.run_id = p_run_id and x.state = 'retrying'
        and x.seq between v_lane.head_seq and v_lane.lease_through_seq
        and x.event_id = any(p_event_ids) and coalesce(p_error ->> 'eventId', x.event_id) = x.event_id;
    update counterfoil.fact_failures as x
    set next_attempt_at = v_retry_at
    where
        x.org_id = p_org_id and x.run_id = p_run_id and x.state = 'retrying'
        and x.seq between v_lane.head_seq and v_lane.lease_through_seq
        and x.event_id = any(p_event_ids) and coalesce(p_error ->> 'eventId', x.event_id) = x.event_id
        and x.next_attempt_at < v_retry_at;

    update counterfoil.lanes as l
    set lease_owner = null, lease_expires_at = null, lease_through_seq = null
    where l.org_id = p_org_id and l.run_id = p_run_id and l.lane = v_lanes[1];
    perform counterfoil.settle_lane_head(p_org_id, p_run_id, v_lanes[1], v_now);

    return query
    select
        g.event_id,
        case when o.seq is null then 'not_owned' else coalesce(x.state, 'retrying') end,
        case when o.seq is not null and x.state is null then v_now else x.next_attempt_at end
    from unnest(p_event_ids) with ordinality as g (event_id, ordinality)
    left join counterfoil.outbox as o
        on o.org_id = p_org_id and o.event_id = g.event_id and o.run_id = p_run_id and o.lane = v_lanes[1]
        and o.seq between v_lane.head_seq and v_lane.lease_through_seq
    left join counterfoil.fact_failures as x on x.org_id = p_org_id and x.run_id = p_run_id and x.seq = o.seq
    order by g.ordinality;
end
$function$;

comment on function counterfoil.settle_delivery_failure(text, text, text[], text, jsonb) is
'Charges a failed delivery to the facts that p_lease_owner holds and releases them: each is retrying (due at next_attempt_at), blocked or not_owned. p_error is {message, code, status, retryable, eventId}: without retryable it can be retried, with eventId only that fact is to blame.';

revoke all on function counterfoil.settle_delivery_failure(text, text, text[], text, jsonb) from public;

create or replace function counterfoil.settle_delivery_failure(p_event_ids text[], p_lease_owner text, p_error jsonb)
returns table (event_id text, outcome text, next_attempt_at timestamptz)
language plpgsql
volatile
parallel unsafe
called on null input
security definer
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_found record;
begin
    select f.* into strict v_found from counterfoil.find_delivery(p_event_ids, p_lease_owner) as f;
    if v_found.org_id is null then
        perform counterfoil.check_delivery_error(p_error);
        return query
        select g.event_id, 'not_owned', null::timestamptz
        from unnest(p_event_ids) with ordinality as g (event_id, ordinality)
        order by g.ordinality;
        return;
    end if;

    return query
    select s.event_id, s.outcome, s.next_attempt_at
    from counterfoil.settle_delivery_failure(v_found.org_id, v_found.run_id, p_event_ids, p_lease_owner, p_error) as s;
end
$function$;

comment on function counterfoil.settle_delivery_failure(text[], text, jsonb) is
'The same for facts known by their event ids alone: finds the org among those with pending facts. The form with p_org_id first is the one for busy callers.';

revoke all on function counterfoil.settle_delivery_failure(text[], text, jsonb) from public;
