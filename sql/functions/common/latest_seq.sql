-- latest_seq: the position of a run's latest fact.
--
-- Promises: that of the newest fact there is, or of the latest that retention has removed where that is later: an older
--           one may still wait in the other lane; 0 for none. The next fact takes the place after it. write_fact asks the
--           same in its own statement.
-- Locks:    nothing: who goes on to write holds the run's row.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.latest_seq(p_org_id text, p_run_id text)
returns bigint
language sql
stable
parallel safe
called on null input
security invoker
as $function$
    select greatest(
        (
            select f.seq
            from counterfoil.outbox as f
            where f.org_id = p_org_id and f.run_id = p_run_id
            order by f.seq desc
            limit 1
        ),
        (
            select p.through_seq
            from counterfoil.purged_facts as p
            where p.org_id = p_org_id and p.run_id = p_run_id
        ),
        0
    )
$function$;

comment on function counterfoil.latest_seq(text, text) is
'Position of a run''s latest fact, also where retention has removed it; 0 for none. Private.';

revoke all on function counterfoil.latest_seq(text, text) from public;
