-- cancel_run: asks for a run's end.
--
-- Promises: a queued or waiting run ends now (cancelled). A running one is marked (requested): its holder learns at the
--           next heartbeat, and recover_attempts() ends it without the holder after cancel_grace_seconds. An ended one
--           stays as it is (already_ended). A repeat changes nothing: the first reason and the first grace time count.
--           With p_descendants also its children, their children and so on, as far as they exist by now.
-- Locks:    admission_counters, concurrency_keys in order, runs in order, attempts, queue rows, lanes.
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
begin
    perform counterfoil.check_cancellation(p_org_id, p_run_id, p_reason);
    return query select c.outcome, c.status from counterfoil.cancel_one(p_org_id, p_run_id, p_reason) as c;
end
$function$;

comment on function counterfoil.cancel_run(text, text, text) is
'Cancels a run: one row (outcome, status), outcome cancelled (ended now), requested (its holder is told) or already_ended.';

revoke all on function counterfoil.cancel_run(text, text, text) from public;

create or replace function counterfoil.cancel_run(p_org_id text, p_run_id text, p_reason text, p_descendants boolean)
returns table (run_id text, outcome text, status text)
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
    v_run_ids text[];
begin
    perform counterfoil.check_cancellation(p_org_id, p_run_id, p_reason);
    if coalesce(p_descendants, false) then
        with recursive family as (
            select p_run_id collate "C" as run_id
            union
            select c.run_id
            from family as f
            cross join lateral (
                select r.run_id
                from counterfoil.runs as r
                where r.org_id = p_org_id and r.parent_run_id = f.run_id
            ) as c
        )

        select array_agg(f.run_id order by f.run_id) into v_run_ids from family as f;

        -- Everything is locked kind by kind before the first run is touched, as if the family were one run.
        perform counterfoil.lock_counters(p_org_id, true);
        perform
        from (
            select distinct r.concurrency_key
            from unnest(v_run_ids) as g (run_id)
            inner join counterfoil.runs as r on r.org_id = p_org_id and r.run_id = g.run_id
            where r.concurrency_key is not null
            order by r.concurrency_key
        ) as k
        cross join lateral (
            select c.in_use
            from counterfoil.concurrency_keys as c
            where c.org_id = p_org_id and c.concurrency_key = k.concurrency_key
            for no key update
        ) as c;
        perform
        from unnest(v_run_ids) with ordinality as g (run_id, place)
        cross join lateral (
            select r.run_id
            from counterfoil.runs as r
            where r.org_id = p_org_id and r.run_id = g.run_id
            for no key update
        ) as r;
    else
        v_run_ids := array[p_run_id];
    end if;

    return query
    select g.run_id, c.outcome, c.status
    from unnest(v_run_ids) as g (run_id)
    cross join lateral counterfoil.cancel_one(p_org_id, g.run_id, p_reason) as c
    order by g.run_id <> p_run_id, g.run_id;
end
$function$;

comment on function counterfoil.cancel_run(text, text, text, boolean) is
'Cancels a run and, with p_descendants, all runs below it: one row a run (run_id, outcome, status), the run itself first.';

revoke all on function counterfoil.cancel_run(text, text, text, boolean) from public;
