-- run_has_remains: whether something of an ended run is left for which its row must stay.
--
-- Promises: true while a fact of it is pending, blocked or kept by outbox_retention, or a run that it launched is there: a
--           family goes from its leaves, so that nothing changes in a run that stays.
-- Locks:    nothing: to rely on a false one holds the run's row, for update.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.run_has_remains(p_org_id text, p_run_id text)
returns boolean
language sql
stable
parallel safe
called on null input
security invoker
as $function$
    select
        exists (select from counterfoil.lanes as l where l.org_id = p_org_id and l.run_id = p_run_id)
        -- Ordered, so that no index without the order will do: one of those reads the whole org.
        or (
            select f.seq
            from counterfoil.outbox as f
            where f.org_id = p_org_id and f.run_id = p_run_id
            order by f.seq
            limit 1
        ) is not null
        or exists (select from counterfoil.runs as c where c.org_id = p_org_id and c.parent_run_id = p_run_id)
$function$;

comment on function counterfoil.run_has_remains(text, text) is
'Whether a pending or kept fact or a child of a run is left, so that retention keeps the run''s row. Private.';

revoke all on function counterfoil.run_has_remains(text, text) from public;
