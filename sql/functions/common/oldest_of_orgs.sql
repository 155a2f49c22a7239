-- oldest_of_orgs: the orgs that have rows of a kind that retention takes out, and how old the oldest of each is.
--
-- Promises: up to p_limit orgs after p_after, in order; one look into the kind's index for each, however many rows it has.
-- Locks:    nothing.
-- Raises:   nothing; an unknown kind has no rows.
-- Since:    1

create or replace function counterfoil.oldest_of_orgs(p_kind text, p_after text, p_limit integer)
returns table (org_id text, oldest timestamptz)
language plpgsql
stable
parallel safe
called on null input
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set jit = off
as $function$
declare
    v_org_id text := p_after;
    v_oldest timestamptz;
begin
    for v_turn in 1..p_limit loop
        if p_kind = 'logs' then
            select d.org_id, d.delivered_at into v_org_id, v_oldest
            from counterfoil.deliveries as d
            where d.org_id > v_org_id and d.logs_purged_at is null
            order by d.org_id, d.delivered_at
            limit 1;
        elsif p_kind = 'facts' then
            select d.org_id, d.delivered_at into v_org_id, v_oldest
            from counterfoil.deliveries as d
            where d.org_id > v_org_id and d.delivered_at > '-infinity'
            order by d.org_id, d.delivered_at
            limit 1;
        elsif p_kind = 'journal' then
            select j.org_id, j.recorded_at into v_org_id, v_oldest
            from counterfoil.run_journal as j
            where j.org_id > v_org_id and j.recorded_at > '-infinity'
            order by j.org_id, j.recorded_at
            limit 1;
        elsif p_kind = 'ledgers' then
            select l.org_id, l.ended_at into v_org_id, v_oldest
            from counterfoil.ledgers as l
            where l.org_id > v_org_id and l.ended_at is not null
            order by l.org_id, l.ended_at
            limit 1;
        elsif p_kind = 'runs' then
            select r.org_id, r.ended_at into v_org_id, v_oldest
            from counterfoil.runs as r
            where r.org_id > v_org_id and r.ended_at is not null
            order by r.org_id, r.ended_at
            limit 1;
        elsif p_kind = 'receipts' then
            select s.org_id, s.settled_at into v_org_id, v_oldest
            from counterfoil.step_receipts as s
            where s.org_id > v_org_id and s.settled_at is not null
            order by s.org_id, s.settled_at
            limit 1;
        elsif p_kind = 'observations' then
            select o.org_id, o.updated_at into v_org_id, v_oldest
            from counterfoil.observations as o
            where o.org_id > v_org_id and o.updated_at > '-infinity'
            order by o.org_id, o.updated_at
            limit 1;
        end if;
        exit when not found;
        org_id := v_org_id;
        oldest := v_oldest;
        return next;
    end loop;
end
$function$;

comment on function counterfoil.oldest_of_orgs(text, text, integer) is
'Up to p_limit orgs after p_after that have rows of a kind retention takes out (logs, facts, journal, ledgers, runs, receipts, observations), each with the time of its oldest. Private.';

revoke all on function counterfoil.oldest_of_orgs(text, text, integer) from public;
