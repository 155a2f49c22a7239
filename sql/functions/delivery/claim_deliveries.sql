-- claim_deliveries: leases the first pending facts of runs to a dispatcher.
--
-- Promises: up to p_max_runs lanes (never over claim_batch_max), each with its prefix of up to p_limit facts (never over
--           prefix_max_facts), in causal order, each fact with its ledger events (null while it is deferred); the first
--           of each run carries the dispatch authority, each the idempotency key of its prefix. A frozen receipt is taken
--           whole and alone, whatever p_limit says. Lanes that are blocked, not due or under a live lease are passed
--           over. The cost does not grow with what waits, nor, with p_marks, with what was delivered under a snapshot that
--           keeps it from being cleaned away. Marks are a hint: without them all is looked at. filled says that as many
--           lanes were found as were to be found, so that more may wait. A claim whose reply was lost is an expired
--           lease, no more.
-- Locks:    the lanes claimed, for no key update; never waits, but for the lane of p_run_id.
-- Raises:   RL001 malformed arguments.
-- Since:    1

create or replace function counterfoil.claim_deliveries(
    p_lease_owner text,
    p_lease_seconds integer default 30,
    p_limit integer default 64,
    p_max_runs integer default 1,
    p_org_id text default null,
    p_run_id text default null,
    p_lane text default 'lifecycle',
    p_head_priority text default 'admission_first',
    p_allow_ingress_prefix boolean default false,
    p_marks timestamptz[] default null
)
returns table (
    org_id text,
    run_id text,
    lane text,
    seq bigint,
    event_id text,
    event_type text,
    delivery_key uuid,
    deferred boolean,
    payload jsonb,
    events jsonb,
    created_at timestamptz,
    lease_expires_at timestamptz,
    frozen boolean,
    idempotency_key text,
    dispatch_authority jsonb,
    marks timestamptz[],
    filled boolean
)
language plpgsql
volatile
parallel unsafe
called on null input
security definer
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_limit integer;
    v_max_runs integer;
    v_now timestamptz;
    v_org_id text := p_org_id;
    v_org_ids text[];
    v_run_ids text[];
    v_marks timestamptz[];
begin
    perform counterfoil.check_id(p_lease_owner, 'p_lease_owner');
    perform counterfoil.check_limit(p_limit, 1, 2147483647, 'p_limit');
    perform counterfoil.check_limit(p_max_runs, 1, 2147483647, 'p_max_runs');
    perform counterfoil.check_lane(p_lane);
    if p_head_priority is null or p_head_priority not in ('admission_first', 'oldest_ready') then
        perform counterfoil.raise_invalid_argument(
            'p_head_priority is no known order.', 'p_head_priority', 'Give admission_first or oldest_ready.'
        );
    end if;
    v_limit := least(p_limit, counterfoil.setting_integer('prefix_max_facts'))::integer;
    v_max_runs := least(p_max_runs, counterfoil.setting_integer('claim_batch_max'))::integer;

    if p_run_id is not null then
        perform counterfoil.check_id(p_run_id, 'p_run_id');
        if v_org_id is null then
            v_org_id := counterfoil.find_org_of_lane(p_run_id, p_lane);
        else
            perform counterfoil.check_id(v_org_id, 'p_org_id');
        end if;
        -- Waits for whoever writes to the lane; what it wrote is then seen below.
        perform
        from counterfoil.lanes as l
        where l.org_id = v_org_id and l.run_id = p_run_id and l.lane = p_lane
        for no key update;
        v_org_ids := array[v_org_id];
        v_run_ids := array[p_run_id];
        v_now := clock_timestamp();
    elsif p_org_id is not null then
        perform counterfoil.check_id(p_org_id, 'p_org_id');
        select k.org_ids, k.run_ids, k.marks, k.picked_at
        into v_org_ids, v_run_ids, v_marks, v_now
        from counterfoil.pick_lanes_of_org(p_org_id, p_lane, p_head_priority, v_max_runs, p_marks) as k;
    else
        select k.org_ids, k.run_ids, k.marks, k.picked_at
        into v_org_ids, v_run_ids, v_marks, v_now
        from counterfoil.pick_lanes(p_lane, p_head_priority, v_max_runs, p_marks) as k;
    end if;

    if v_org_ids is null then
        return;
    end if;

    return query
    select t.*, v_marks, cardinality(v_run_ids) = v_max_runs
    from counterfoil.take_prefixes(
        v_org_ids, v_run_ids, p_lane, p_lease_owner, v_now + counterfoil.clamp_lease(p_lease_seconds),
        v_limit, coalesce(p_allow_ingress_prefix, false), v_now
    ) as t;
end
$function$;

comment on function counterfoil.claim_deliveries(text, integer, integer, integer, text, text, text, text, boolean, timestamptz[]) is
'Leases the prefixes of up to p_max_runs lanes to p_lease_owner and answers their facts in order, each with its ledger events. p_limit bounds the facts of one prefix; p_org_id and p_run_id narrow the claim; p_head_priority is admission_first or oldest_ready; p_allow_ingress_prefix lets ingress facts of an urgent run combine, for a receiver that said it can take them. p_marks spares the claim what earlier ones have passed: the times, one for each priority (0 to 3), from which lanes are looked at, and four more, if given, up to which; marks are those of this claim, and filled says that it found as many lanes as it was to find. Now and then what lies behind them must be looked at, all at once or in pieces.';

revoke all on function counterfoil.claim_deliveries(text, integer, integer, integer, text, text, text, text, boolean, timestamptz[]) from public;
