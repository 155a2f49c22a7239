-- journal_horizon: the position before which nothing more will come into a run's journal.
--
-- Promises: facts are indexed lane by lane, so an entry of an earlier fact can come after one of a later fact. Below this
--           position everything is there: it is that of the first deferred fact that is still to be indexed, the largest
--           bigint where there is none. Facts behind a blocked one do not count: they wait for an operator.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.journal_horizon(p_org_id text, p_run_id text)
returns bigint
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
    v_seq bigint;
begin
    -- Of a lane with thousands of pending facts the first are enough: if none of them is deferred, nothing behind counts yet.
    select min(p.seq) into v_seq
    from counterfoil.lanes as l
    cross join lateral (
        select f.seq
        from (
            select o.seq, o.deferred, row_number() over () as nth
            from (
                select b.seq, b.deferred
                from counterfoil.outbox as b
                where b.org_id = p_org_id and b.run_id = p_run_id and b.lane = l.lane and b.seq >= l.head_seq
                order by b.seq
                limit 5000
            ) as o
        ) as f
        where f.deferred or f.nth = 5000
        limit 1
    ) as p
    where l.org_id = p_org_id and l.run_id = p_run_id and l.blocked_at is null;

    return coalesce(v_seq * 1048576, 9223372036854775807);
end
$function$;

comment on function counterfoil.journal_horizon(text, text) is
'Position below which a run''s journal is complete, as long as facts of it are still to be indexed; else the largest bigint. Private.';

revoke all on function counterfoil.journal_horizon(text, text) from public;
