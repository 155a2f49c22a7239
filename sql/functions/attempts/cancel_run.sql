-- cancel_run: asks for a run's end.
--
-- Promises: a queued or waiting run ends now (cancelled). A running one is marked (requested): its holder learns at the
--           next heartbeat, and recover_attempts() ends it without the holder after cancel_grace_seconds. An ended one
--           stays as it is (already_ended). A repeat changes nothing: the first reason and the first grace time count.
-- Locks:    admission_counters, concurrency_keys, the run, the attempt, queue rows, lanes.
-- Raises:   RL001; RL002 run_not_found.
-- Since:    1

create or replace function counterfoil.cancel_run(p_org_id text, p_run_id text, p_reason text)
returns table (outcome text, status text)
language plpgsql
volatile
parallel unsafe
called on null input
security definer
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_run counterfoil.runs;
    v_shards smallint [];
    v_attempt counterfoil.attempts;
    v_now timestamptz;
    v_grace bigint := counterfoil.setting_integer('cancel_grace_seconds');
begin
    perform counterfoil.check_id(p_org_id, 'p_org_id');
    perform counterfoil.check_id(p_run_id, 'p_run_id');
    if length(p_reason) > 2000 then
        perform counterfoil.raise_invalid_argument(
            format('p_reason has %s characters; a reason may have 2000.', length(p_reason)), 'p_reason',
            'Give a shorter reason.'
        );
    end if;

    v_shards := counterfoil.hold_before_run(p_org_id, p_run_id, true);
    v_run := counterfoil.hold_run(p_org_id, p_run_id, true);
    v_now := clock_timestamp();
    if v_run.ended_at is not null then
        return query select 'already_ended'::text, v_run.status;
        return;
    end if;

    if v_run.cancel_requested_at is null then
        update counterfoil.runs as r
        set
            cancel_requested_at = v_now,
            cancel_reason = p_reason,
            cancel_deadline_at = case when r.status = 'running' then v_now + make_interval(secs => v_grace) end
        where r.org_id = p_org_id and r.run_id = p_run_id;
        v_run.cancel_reason := p_reason;
    end if;
    if v_run.status = 'running' then
        return query select 'requested'::text, v_run.status;
        return;
    end if;

    v_attempt := counterfoil.hold_open_attempt(p_org_id, p_run_id);
    if v_attempt.attempt is not null then
        perform counterfoil.end_attempt(v_attempt, 'cancelled', null, null, null, null, v_now);
    end if;
    perform counterfoil.cancel_now(v_run, v_shards, v_now);
    return query select 'cancelled'::text, 'cancelled'::text;
end
$function$;

comment on function counterfoil.cancel_run(text, text, text) is
'Cancels a run: one row (outcome, status), outcome cancelled (ended now), requested (its holder is told) or already_ended.';

revoke all on function counterfoil.cancel_run(text, text, text) from public;
