-- purged_through: where the positions of a run's facts have come to when retention has removed the latest of them.
--
-- Promises: the position of the latest fact removed, 0 when none was. To be asked only where no fact is left.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.purged_through(p_org_id text, p_run_id text)
returns bigint
language sql
stable
parallel safe
called on null input
security invoker
as $function$
    select coalesce((
        select p.through_seq
        from counterfoil.purged_facts as p
        where p.org_id = p_org_id and p.run_id = p_run_id
    ), 0)
$function$;

comment on function counterfoil.purged_through(text, text) is
'Position of the latest fact of a run that retention has removed, or 0; asked where no fact is left. Private.';

revoke all on function counterfoil.purged_through(text, text) from public;
