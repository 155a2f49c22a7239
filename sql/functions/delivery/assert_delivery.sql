-- assert_delivery: proves a delivery to the receiver that is about to append it.
--
-- Promises: returns only when p_idempotency_key names the run's exact, contiguous, due prefix in the lifecycle lane, held
--           by p_lease_owner under a live lease, and, where events are given, they equal the projection of those very facts:
--           all of it, or with p_chunk of p_chunk_count one contiguous slice. It stays so until the receiver's transaction
--           ends. Answers the first and last fact, and where the given events begin among all events of the delivery
--           (from 0) and how many those are. Reads no facts past the prefix limit, and no payload outside the delivery.
-- Locks:    the lane, for no key update.
-- Raises:   RL001 malformed arguments; RL002 run_not_found; RL005 projection_deferred;
--           RL004 with one of these reasons:
--           nothing_pending             all was delivered
--           head_lease_owner_mismatch   another owner holds, or last held, the head
--           delivery_lease_not_current  nobody holds it: it was released
--           prefix_lease_expired        this owner's lease has lapsed
--           prefix_not_due              the named facts wait for a retry
--           predecessor_failed          one of them is blocked
--           prefix_lease_owner_mismatch the named facts go beyond what this owner holds
--           receipt_boundary_mismatch   the key names no prefix, or splits or outgrows the frozen receipt
--           projected_events_mismatch   the events are not those of these facts
-- Since:    1

create or replace function counterfoil.assert_delivery(
    p_org_id text,
    p_run_id text,
    p_lease_owner text,
    p_idempotency_key text,
    p_projected_events jsonb default null,
    p_chunk integer default null,
    p_chunk_count integer default null
)
returns table (first_seq bigint, last_seq bigint, first_index integer, event_total integer)
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
    v_now timestamptz;
    v_lane record;
    v_through_seq bigint;
    v_reason text;
    v_facts record;
    v_index integer := 0;
begin
    -- Asked in the cheapest way first; what breaks a rule is told apart by the function that explains it.
    if not (counterfoil.is_id(p_org_id) and counterfoil.is_id(p_run_id) and counterfoil.is_id(p_lease_owner)) then
        perform counterfoil.check_id(p_org_id, 'p_org_id');
        perform counterfoil.check_id(p_run_id, 'p_run_id');
        perform counterfoil.check_id(p_lease_owner, 'p_lease_owner');
    end if;
    if coalesce(p_idempotency_key, '') = '' then
        perform counterfoil.raise_invalid_argument(
            'p_idempotency_key is missing.', 'p_idempotency_key', 'Give the key of the delivery.'
        );
    end if;
    if p_projected_events is not null and jsonb_typeof(p_projected_events) <> 'array' then
        perform counterfoil.raise_invalid_argument(
            'p_projected_events is no JSON array.', 'p_projected_events', 'Give the events as an array, or null.'
        );
    end if;
    if p_chunk is not null or p_chunk_count is not null then
        perform counterfoil.check_limit(p_chunk_count, 1, 1000000, 'p_chunk_count');
        perform counterfoil.check_limit(p_chunk, 1, p_chunk_count, 'p_chunk');
    end if;

    select
        l.head_seq, l.due_at, l.blocked_at, l.failures > 0 as has_failures,
        l.lease_owner, l.lease_expires_at, l.lease_through_seq, l.receipt_key, l.receipt_through_seq
    into v_lane
    from counterfoil.lanes as l
    where l.org_id = p_org_id and l.run_id = p_run_id and l.lane = 'lifecycle'
    order by l.head_seq desc
    limit 1
    for no key update;
    if not found then
        if not exists (select from counterfoil.runs as r where r.org_id = p_org_id and r.run_id = p_run_id) then
            perform counterfoil.raise_not_found('There is no such run.', 'run_not_found', 'Check p_org_id and p_run_id.');
        end if;
        perform counterfoil.raise_lease_lost(
            'The run has no pending facts.', 'nothing_pending', 'Drop the delivery: all was acknowledged.'
        );
    end if;
    v_now := clock_timestamp();

    v_reason := case
        when v_lane.lease_owner is null then case
            when v_lane.blocked_at is not null then 'predecessor_failed'
            when v_lane.due_at > v_now then 'prefix_not_due'
            else 'delivery_lease_not_current'
        end
        when v_lane.lease_owner <> p_lease_owner then 'head_lease_owner_mismatch'
        when v_lane.lease_expires_at <= v_now then 'prefix_lease_expired'
    end;

    if v_reason is null and v_lane.receipt_key is not null then
        if v_lane.receipt_key = p_idempotency_key then
            v_through_seq := v_lane.receipt_through_seq;
        else
            v_reason := 'receipt_boundary_mismatch';
        end if;
    elsif v_reason is null then
        -- Which prefix, if any, the key names: that of the lease, or one that begins as it does.
        select k.seq, k.reason
        into v_through_seq, v_reason
        from (
            select
                f.seq,
                counterfoil.receipt_key(p_run_id, f.terminal_key, f.all_keys) as receipt_key,
                case
                    when f.seq <= v_lane.lease_through_seq then null
                    when f.failed then 'predecessor_failed'
                    when f.waits then 'prefix_not_due'
                    else 'prefix_lease_owner_mismatch'
                end as reason
            from (
                select
                    o.seq,
                    max(o.delivery_key::text) filter (where counterfoil.event_kind(o.event_type) = 'terminal') over w as terminal_key,
                    string_agg(o.delivery_key::text, e'\n') over w as all_keys,
                    bool_or(x.state = 'blocked') over w as failed,
                    bool_or(x.next_attempt_at > v_now) over w as waits
                from (
                    select b.seq, b.event_type, b.delivery_key
                    from counterfoil.outbox as b
                    where
                        b.org_id = p_org_id and b.run_id = p_run_id and b.lane = 'lifecycle' and b.seq >= v_lane.head_seq
                    order by b.seq
                    limit counterfoil.setting_integer('prefix_max_facts')
                ) as o
                left join counterfoil.fact_failures as x
                    on v_lane.has_failures and x.org_id = p_org_id and x.run_id = p_run_id and x.seq = o.seq
                window w as (order by o.seq rows between unbounded preceding and current row)
            ) as f
        ) as k
        where k.receipt_key = p_idempotency_key
        -- Late logs do not change the key of a terminal: what is held comes before what goes beyond it.
        order by k.reason is not null, k.seq desc
        limit 1;
        if v_through_seq is null then
            v_reason := 'receipt_boundary_mismatch';
        end if;
    end if;

    if v_reason is not null then
        perform counterfoil.raise_lease_lost(
            case v_reason
                when 'predecessor_failed' then 'A fact of this delivery is blocked.'
                when 'prefix_not_due' then 'The facts of this delivery wait for their retry.'
                when 'delivery_lease_not_current' then 'Nobody holds a lease on this delivery.'
                when 'head_lease_owner_mismatch' then 'Another owner holds the first pending fact.'
                when 'prefix_lease_expired' then 'The lease on this delivery has lapsed.'
                when 'prefix_lease_owner_mismatch' then 'This delivery goes beyond the facts that its owner holds.'
                else 'The key names no prefix that could be delivered now.'
            end,
            v_reason,
            'Claim again, and deliver exactly what the claim or the frozen receipt holds.'
        );
    end if;

    if p_projected_events is null then
        return query select v_lane.head_seq, v_through_seq, null::integer, null::integer;
        return;
    end if;

    select
        coalesce(bool_or(o.deferred), false) as has_deferred,
        coalesce(jsonb_agg(e.event order by o.seq, e.ordinality) filter (where e.event is not null), '[]'::jsonb) as events
    into v_facts
    from counterfoil.outbox as o
    left join lateral jsonb_array_elements(
        case when not o.deferred then counterfoil.project_events(
            o.event_type, o.event_id, o.run_id, o.seq, o.created_at, o.payload
        ) end
    ) with ordinality as e (event, ordinality) on true
    where
        o.org_id = p_org_id and o.run_id = p_run_id and o.lane = 'lifecycle'
        and o.seq between v_lane.head_seq and v_through_seq;

    if v_facts.has_deferred then
        perform counterfoil.raise_invalid_state(
            'A fact of this delivery has not been materialised yet.', 'projection_deferred',
            'Materialise every deferred fact before it is delivered.'
        );
    end if;

    if coalesce(p_chunk_count, 1) = 1 then
        if v_facts.events <> p_projected_events then
            v_index := null;
        end if;
    else
        -- An event's fact and item say where the slice begins.
        select (e.ordinality - 1)::integer
        into v_index
        from jsonb_array_elements(v_facts.events) with ordinality as e (event, ordinality)
        where
            e.event -> 'eventId' = p_projected_events -> 0 -> 'eventId'
            and e.event -> 'item' = p_projected_events -> 0 -> 'item'
        limit 1;
        if v_index is not null then
            v_index := case
                when jsonb_path_query_array(
                    v_facts.events, '$[$first to $last]',
                    jsonb_build_object('first', v_index, 'last', v_index + jsonb_array_length(p_projected_events) - 1)
                ) = p_projected_events then v_index
            end;
        end if;
    end if;
    if v_index is null then
        perform counterfoil.raise_lease_lost(
            'The events are not the projection of the facts of this delivery.', 'projected_events_mismatch',
            'Deliver the events as the claim projected them: none forged, dropped, moved or edited.'
        );
    end if;

    return query select v_lane.head_seq, v_through_seq, v_index, jsonb_array_length(v_facts.events);
end
$function$;

comment on function counterfoil.assert_delivery(text, text, text, text, jsonb, integer, integer) is
'Proves, in the transaction that appends, that the key names exactly the prefix that p_lease_owner holds under a live lease and that the events, or the slice that p_chunk of p_chunk_count is, are its projection. RL004 with the reason otherwise.';

revoke all on function counterfoil.assert_delivery(text, text, text, text, jsonb, integer, integer) from public;
