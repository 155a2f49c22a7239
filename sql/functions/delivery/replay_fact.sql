-- replay_fact: lets a blocked fact, and those frozen with it, be delivered again.
--
-- Promises: the fact starts its retry policy anew, and its lane is due now if nothing else blocks it. The blocked facts of
--           one frozen receipt can only go together, so they are replayed together. Order and receipt stay. One row for
--           each fact replayed; the audit trail says who, what and why.
-- Locks:    the lane, for no key update.
-- Raises:   RL001 malformed arguments or no reason; RL002 fact_not_found; RL005 fact_not_blocked.
-- Since:    1

create or replace function counterfoil.replay_fact(p_org_id text, p_run_id text, p_event_id text, p_reason text)
returns table (event_id text)
language plpgsql
volatile
parallel unsafe
called on null input
security invoker
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_blocked record;
    v_replayed text[];
    v_audit_id uuid := gen_random_uuid();
begin
    select b.* into strict v_blocked from counterfoil.lock_blocked(p_org_id, p_run_id, p_event_id, p_reason) as b;

    with replayed as (
        delete from counterfoil.fact_failures as x
        where
            x.org_id = p_org_id and x.run_id = p_run_id and x.lane = v_blocked.lane and x.state <> 'skipped'
            and (x.seq = v_blocked.seq or (v_blocked.seq <= v_blocked.receipt_through_seq and x.seq <= v_blocked.receipt_through_seq))
        returning x.event_id, x.seq
    )

    select array_agg(r.event_id order by r.seq) into v_replayed from replayed as r;

    perform counterfoil.settle_lane_head(p_org_id, p_run_id, v_blocked.lane, v_blocked.locked_at);
    perform counterfoil.wake(v_blocked.lane);

    insert into counterfoil.operator_audit (org_id, audit_id, recorded_at, actor, action, target, reason, details)
    values (
        p_org_id, v_audit_id, v_blocked.locked_at, session_user, 'replay_blocked',
        jsonb_build_object('runId', p_run_id, 'eventId', p_event_id), p_reason,
        jsonb_build_object('lane', v_blocked.lane, 'seq', v_blocked.seq, 'replayed', to_jsonb(v_replayed))
    );

    return query select r.event_id from unnest(v_replayed) as r (event_id);
end
$function$;

comment on function counterfoil.replay_fact(text, text, text, text) is
'Puts a blocked fact, with those frozen with it, back in delivery, or raises RL001, RL002, RL005. For replay_blocked and replay_all_blocked. Private.';

revoke all on function counterfoil.replay_fact(text, text, text, text) from public;
