-- take_over_delivery: gives a canceller the pending facts of the run it cancelled.
--
-- Promises: the lifecycle lane of a run that is cancelled, or asked to be, is leased to p_lease_owner, whoever held it, and
--           its prefix is answered as claim_deliveries does; the former holder can renew, prove and acknowledge nothing any
--           more. A frozen receipt is taken as it is. With acknowledge_delivery and its continuation the canceller then
--           drains the run through its terminal. Empty when nothing is pending, blocked or not due.
-- Locks:    the run, then the lane, for no key update.
-- Raises:   RL001 malformed arguments; RL002 run_not_found; RL005 run_not_cancelled.
-- Since:    1

create or replace function counterfoil.take_over_delivery(
    p_org_id text,
    p_run_id text,
    p_lease_owner text default null,
    p_lease_seconds integer default 150,
    p_limit integer default 64,
    p_allow_ingress_prefix boolean default false
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
    dispatch_authority jsonb
)
language plpgsql
volatile
parallel unsafe
called on null input
security definer
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_now timestamptz;
    v_run record;
    v_lease_owner text;
begin
    perform counterfoil.check_id(p_org_id, 'p_org_id');
    perform counterfoil.check_id(p_run_id, 'p_run_id');
    perform counterfoil.check_limit(p_limit, 1, 2147483647, 'p_limit');
    -- Each cancellation has a name of its own unless the caller chose one.
    v_lease_owner := coalesce(p_lease_owner, 'cancellation:' || gen_random_uuid());
    perform counterfoil.check_id(v_lease_owner, 'p_lease_owner');

    select r.status, r.cancel_requested_at
    into v_run
    from counterfoil.runs as r
    where r.org_id = p_org_id and r.run_id = p_run_id
    for no key update;
    if not found then
        perform counterfoil.raise_not_found('There is no such run.', 'run_not_found', 'Check p_org_id and p_run_id.');
    elsif v_run.status <> 'cancelled' and v_run.cancel_requested_at is null then
        perform counterfoil.raise_invalid_state(
            'The run is not being cancelled.', 'run_not_cancelled', 'Cancel the run first; else claim its deliveries.'
        );
    end if;

    perform
    from counterfoil.lanes as l
    where l.org_id = p_org_id and l.run_id = p_run_id and l.lane = 'lifecycle'
    for no key update;
    v_now := clock_timestamp();

    update counterfoil.lanes as l
    set lease_owner = null, lease_expires_at = null, lease_through_seq = null
    where l.org_id = p_org_id and l.run_id = p_run_id and l.lane = 'lifecycle' and l.lease_owner is not null;

    return query
    select t.*
    from counterfoil.take_prefixes(
        array[p_org_id], array[p_run_id], 'lifecycle', v_lease_owner,
        v_now + counterfoil.clamp_lease(p_lease_seconds),
        least(p_limit, counterfoil.setting_integer('prefix_max_facts'))::integer,
        coalesce(p_allow_ingress_prefix, false), v_now
    ) as t;
end
$function$;

comment on function counterfoil.take_over_delivery(text, text, text, integer, integer, boolean) is
'Takes the lifecycle lane of a run that is being cancelled from whoever holds it and leases its prefix to p_lease_owner (a fresh cancellation:… name when null), answered as claim_deliveries does.';

revoke all on function counterfoil.take_over_delivery(text, text, text, integer, integer, boolean) from public;
