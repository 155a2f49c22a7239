-- lock_blocked: finds a blocked fact for an operator and locks its lane.
--
-- Promises: returns the lane and position of a fact that is blocked, and keeps it so until the transaction ends.
-- Locks:    the lane, for no key update.
-- Raises:   RL001 malformed arguments or no reason; RL002 fact_not_found; RL005 fact_not_blocked.
-- Since:    1

create or replace function counterfoil.lock_blocked(
    p_org_id text,
    p_run_id text,
    p_event_id text,
    p_reason text,
    out lane text,
    out seq bigint,
    out event_type text,
    out receipt_through_seq bigint,
    out locked_at timestamptz
)
returns record
language plpgsql
volatile
parallel unsafe
called on null input
security invoker
set search_path = pg_catalog, pg_temp
as $function$
begin
    perform counterfoil.check_id(p_org_id, 'p_org_id');
    perform counterfoil.check_id(p_run_id, 'p_run_id');
    perform counterfoil.check_id(p_event_id, 'p_event_id');
    perform counterfoil.check_reason(p_reason);

    select o.lane, o.seq, o.event_type
    into lane, seq, event_type
    from counterfoil.outbox as o
    where o.org_id = p_org_id and o.event_id = p_event_id and o.run_id = p_run_id;
    if not found then
        perform counterfoil.raise_not_found(
            'The run has no such fact.', 'fact_not_found', 'Check p_run_id and p_event_id.'
        );
    end if;

    select l.receipt_through_seq
    into receipt_through_seq
    from counterfoil.lanes as l
    where l.org_id = p_org_id and l.run_id = p_run_id and l.lane = lock_blocked.lane
    for no key update;
    locked_at := clock_timestamp();

    if not exists (
        select
        from counterfoil.fact_failures as x
        where x.org_id = p_org_id and x.run_id = p_run_id and x.seq = lock_blocked.seq and x.state = 'blocked'
    ) then
        perform counterfoil.raise_invalid_state(
            'The fact is not blocked.', 'fact_not_blocked', 'See list_blocked() for what is.'
        );
    end if;
end
$function$;

comment on function counterfoil.lock_blocked(text, text, text, text) is
'Locks the lane of a blocked fact for replay_blocked and skip_blocked, or raises RL001, RL002, RL005. Private.';

revoke all on function counterfoil.lock_blocked(text, text, text, text) from public;
