-- skip_blocked: lets a lane pass over a blocked fact.
--
-- Promises: the fact is never delivered, stays in the outbox and is in the delivery log as skipped once the lane has passed
--           it; what comes after keeps its order. A frozen receipt that held it is dissolved: the rest of it is delivered
--           under a new key, or that of the terminal in it, and a receiver that had appended it knows its events. The audit
--           trail says who, what and why.
--           Start and terminal facts cannot be skipped: without them the run's ledger could not be whole.
-- Locks:    the lane, for no key update.
-- Raises:   RL001 malformed arguments or no reason; RL002 fact_not_found; RL005 fact_not_blocked, fact_not_skippable.
-- Since:    1

create or replace function counterfoil.skip_blocked(p_org_id text, p_run_id text, p_event_id text, p_reason text)
returns void
language plpgsql
volatile
parallel unsafe
called on null input
security definer
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_blocked record;
    v_audit_id uuid := gen_random_uuid();
begin
    select b.* into strict v_blocked from counterfoil.lock_blocked(p_org_id, p_run_id, p_event_id, p_reason) as b;
    if counterfoil.event_kind(v_blocked.event_type) in ('start', 'terminal') then
        perform counterfoil.raise_invalid_state(
            'A start or terminal fact cannot be skipped.', 'fact_not_skippable',
            'Mend what refuses it and call replay_blocked().'
        );
    end if;

    update counterfoil.fact_failures as x
    set state = 'skipped', skipped_at = v_blocked.locked_at, skipped_by = session_user
    where x.org_id = p_org_id and x.run_id = p_run_id and x.seq = v_blocked.seq;

    if v_blocked.seq <= v_blocked.receipt_through_seq then
        update counterfoil.lanes as l
        set
            receipt_key = null,
            receipt_through_seq = null,
            receipt_frozen_at = null,
            receipt_piece_max_events = null,
            receipt_piece_max_bytes = null
        where l.org_id = p_org_id and l.run_id = p_run_id and l.lane = v_blocked.lane;
    end if;
    perform counterfoil.settle_lane_head(p_org_id, p_run_id, v_blocked.lane, v_blocked.locked_at);
    perform counterfoil.wake(v_blocked.lane);

    insert into counterfoil.operator_audit (org_id, audit_id, recorded_at, actor, action, target, reason, details)
    values (
        p_org_id, v_audit_id, v_blocked.locked_at, session_user, 'skip_blocked',
        jsonb_build_object('runId', p_run_id, 'eventId', p_event_id), p_reason,
        jsonb_build_object(
            'lane', v_blocked.lane, 'seq', v_blocked.seq, 'eventType', v_blocked.event_type,
            'receiptDissolved', coalesce(v_blocked.seq <= v_blocked.receipt_through_seq, false)
        )
    );
end
$function$;

comment on function counterfoil.skip_blocked(text, text, text, text) is
'Makes delivery pass over a blocked fact for good; p_reason is kept in the audit trail. Start and terminal facts cannot be skipped.';

revoke all on function counterfoil.skip_blocked(text, text, text, text) from public;
