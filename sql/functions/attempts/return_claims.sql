-- return_claims: gives back places that a claim took and did not use, and counts who left the queue.
--
-- Promises: the numbers of active runs are as if exactly the picked runs had been claimed, the numbers of queued runs
--           less by those of them that had never started; the same for the installation, whose places were taken for
--           all of the claim and are not returned here.
-- Locks:    rows of admission_counters that the claim holds.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.return_claims(
    p_org_ids text[], p_caps bigint[], p_picked_org_ids text[], p_picked_run_ids text[]
)
returns void
language plpgsql
volatile
parallel unsafe
strict
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_material = off
set jit = off
as $function$
declare
    v_org record;
    v_rules record;
    v_started bigint := 0::bigint;
    v_shard smallint;
begin
    for v_org in
        select
            o.org_id, o.cap, count(g.run_id) as picked,
            count(g.run_id) filter (
                where exists (
                    select
                    from counterfoil.runs as r
                    where r.org_id = g.org_id and r.run_id = g.run_id and r.status = 'queued'
                )
            ) as started
        from unnest(p_org_ids, p_caps) as o (org_id, cap)
        left join unnest(p_picked_org_ids, p_picked_run_ids) as g (org_id, run_id) on g.org_id = o.org_id
        group by o.org_id, o.cap
    loop
        v_started := v_started + v_org.started;
        select r.org_counted into strict v_rules from counterfoil.admission_rules(v_org.org_id) as r;
        if v_rules.org_counted and v_org.cap > 0 then
            -- This transaction holds a row of the org since it took the places.
            v_shard := counterfoil.lock_counter(v_org.org_id, false);
            perform counterfoil.change_counter(v_org.org_id, v_shard, -v_org.started, v_org.picked - v_org.cap);
        end if;
    end loop;

    select r.all_counted into strict v_rules from counterfoil.admission_rules('') as r;
    if v_rules.all_counted and v_started > 0 then
        v_shard := counterfoil.lock_counter('', false);
        perform counterfoil.change_counter('', v_shard, -v_started, 0);
    end if;
end
$function$;

comment on function counterfoil.return_claims(text[], bigint[], text[], text[]) is
'Gives back places of active runs that a claim did not use and counts its runs out of the queue. Private.';

revoke all on function counterfoil.return_claims(text[], bigint[], text[], text[]) from public;
