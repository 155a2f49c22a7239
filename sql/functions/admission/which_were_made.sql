-- which_were_made: sorts wanted runs into those an insert made and those it found.
--
-- Promises: for each wanted run, in order, whether it is among the made ones. A function of its own so that it can be
--           sure of a hash join: both sides may have ten thousand rows.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.which_were_made(
    p_org_ids text[], p_run_ids text[], p_made_org_ids text[], p_made_run_ids text[]
)
returns boolean[]
language sql
immutable
parallel safe
called on null input
security invoker
set search_path = pg_catalog, pg_temp
set enable_nestloop = off
set jit = off
as $function$
    select array_agg(m.run_id is not null order by w.ordinal)
    from unnest(p_org_ids, p_run_ids) with ordinality as w (org_id, run_id, ordinal)
    left join unnest(p_made_org_ids, p_made_run_ids) as m (org_id, run_id)
        on m.org_id = w.org_id and m.run_id = w.run_id
$function$;

comment on function counterfoil.which_were_made(text[], text[], text[], text[]) is
'For each wanted run, in order, whether it is among the made ones. Private.';

revoke all on function counterfoil.which_were_made(text[], text[], text[], text[]) from public;
