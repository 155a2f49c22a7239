-- admit_launch: admits one launch.
--
-- Promises: one row. The run is queued with its run.created fact in one transaction (admitted), or exists with the same
--           identity and nothing is written (replayed). status is the run's present status. The ordinary launch, a new
--           one without key, parent or time in an installation without limits, is written here as admit and admit_runs
--           would write it, in one statement; what is not ordinary, and every refusal, is theirs.
-- Locks:    admission_counters where limits apply, then concurrency_keys, then the new run.
-- Raises:   RL001, RL008 (DETAIL: p_launch.field); RL002 parent_run_not_found; RL003 (DETAIL: the fields that differ);
--           RL006 and RL007 when a limit has no room.
-- Since:    1

create or replace function counterfoil.admit_launch(p_launch jsonb)
returns table (org_id text, run_id text, outcome text, status text)
language plpgsql
volatile
parallel unsafe
called on null input
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $function$
declare
    v_org_id text := p_launch ->> 'orgId';
    v_run_id text := p_launch ->> 'runId';
    v_play_id text := p_launch ->> 'playId';
    v_play_name text := p_launch ->> 'playName';
    v_release_lane text := coalesce(p_launch ->> 'releaseLane', 'default');
    v_digest bytea;
    v_event_id text;
    v_delivery_key uuid;
    v_now timestamptz;
    v_is_ordinary boolean := false;
    v_is_awaited boolean;
begin
    if
        counterfoil.launch_fault(p_launch) is null
        and not p_launch ?| array['concurrencyKey', 'rootRunId', 'parentRunId', 'availableAt']
    then
        -- A document that small is neither too large, whatever the setting, nor too deep.
        v_is_ordinary := octet_length(p_launch::text) <= 400;
        if not v_is_ordinary and octet_length(p_launch::text) <= counterfoil.setting_integer('launch_max_bytes') then
            perform counterfoil.check_document(p_launch, 'p_launch');
            v_is_ordinary := true;
        end if;
    end if;
    -- In another isolation a repeat is looked up first: it needs no limits, which may have changed since its snapshot.
    v_is_ordinary := v_is_ordinary and current_setting('transaction_isolation') = 'read committed';
    if v_is_ordinary then
        perform counterfoil.hold_limits();
        v_is_ordinary := not exists (
            select
            from counterfoil.admission_limits as a
            where num_nonnulls(a.max_queued, a.max_active, a.launches_per_minute) > 0
        );
    end if;
    if v_is_ordinary then
        v_digest := counterfoil.canonical_digest(counterfoil.launch_identity(p_launch));
        v_event_id := 'run.created:' || gen_random_uuid()::text;
        v_delivery_key := gen_random_uuid();
        v_now := clock_timestamp();
        with made as (
            insert into counterfoil.runs as r (
                org_id, run_id, status, play_id, play_name, release_lane, priority, root_run_id, launch_digest, created_at,
                available_at, deadline_at, attempt_timeout_seconds, max_attempts
            )
            values (
                v_org_id, v_run_id, 'queued', v_play_id, v_play_name, v_release_lane,
                coalesce((p_launch ->> 'priority')::numeric, 5), v_run_id, v_digest, v_now,
                v_now, counterfoil.read_time(p_launch -> 'deadlineAt'), (p_launch ->> 'attemptTimeoutSeconds')::numeric,
                coalesce(
                    (p_launch ->> 'maxAttempts')::numeric,
                    (
                        select (coalesce(s.value, s.default_value) #>> '{}')::bigint
                        from counterfoil.settings as s
                        where s.name = 'default_max_attempts'
                    )
                )
            )
            on conflict on constraint runs_pkey do nothing
            returning r.priority
        ),

        launched as (
            insert into counterfoil.launches (org_id, run_id, launch, dispatch_authority)
            select v_org_id, v_run_id, p_launch, counterfoil.launch_authority(p_launch)
            from made as m
        ),

        placed as (
            insert into counterfoil.run_queue (
                org_id, run_id, state, slotless, release_lane, play_name, priority, ready_at, queued_at
            )
            select v_org_id, v_run_id, 'ready', false, v_release_lane, v_play_name, m.priority, v_now, v_now
            from made as m
        ),

        written as (
            insert into counterfoil.outbox (
                org_id, run_id, seq, event_id, event_type, lane, deferred, payload, delivery_key, created_at
            )
            select
                v_org_id, v_run_id, 1, v_event_id, 'run.created', 'lifecycle', false,
                jsonb_build_object('playId', v_play_id, 'playName', v_play_name, 'rootRunId', v_run_id), v_delivery_key, v_now
            from made as m
        ),

        queued as (
            insert into counterfoil.lanes (org_id, run_id, lane, priority, due_at, head_seq, tail_seq)
            select v_org_id, v_run_id, 'lifecycle', counterfoil.lane_priority(1, null, null), v_now, 1, 1
            from made as m
        )

        select exists (select from counterfoil.listeners as s where s.queue in ('attempts', 'lifecycle'))
        into v_is_awaited
        from made as m;

        if found then
            if v_is_awaited then
                perform counterfoil.wake('lifecycle');
                perform counterfoil.wake('attempts');
            end if;
            org_id := v_org_id;
            run_id := v_run_id;
            outcome := 'admitted';
            status := 'queued';
            return next;
            return;
        end if;
    end if;

    return query
    select a.org_id, a.run_id, a.outcome, a.status
    from counterfoil.admit(jsonb_build_array(p_launch), true) as a;
end
$function$;

comment on function counterfoil.admit_launch(jsonb) is
'Admits one launch document: one row (org_id, run_id, outcome, status), outcome admitted or replayed. RL003 when the run exists with another launch; RL006, RL007 when a limit has no room.';

revoke all on function counterfoil.admit_launch(jsonb) from public;
