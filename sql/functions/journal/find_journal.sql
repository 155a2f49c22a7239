-- find_journal: an org's entries that have all of some terms, found through the index of terms.
--
-- Promises: at most p_limit entries, in no order: fewer are all there are. p_slice narrows it to a day or an hour.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.find_journal(p_org_id text, p_terms bigint[], p_slice bigint[], p_limit integer)
returns setof counterfoil.run_journal
language plpgsql
stable
parallel safe
called on null input
security invoker
-- Planned anew with the real values: what is rare and what is common is known per org and word from the statistics.
set plan_cache_mode = force_custom_plan
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_indexscan = off
-- Said again, since a caller that scans has turned it off for all that it calls.
set enable_bitmapscan = on
set jit = off
as $function$
begin
    if cardinality(p_slice) = 0 then
        return query
        select j.*
        from counterfoil.run_journal as j
        where j.org_id = p_org_id and j.terms @> p_terms
            -- Asked for already; but where there are no statistics, one condition looks no better than an index of the org.
            and j.terms @> p_terms[1 : 1]
        limit p_limit;
    else
        -- Two conditions and not one: the index then leaps from each to the next place that the other allows.
        return query
        select j.*
        from counterfoil.run_journal as j
        where j.org_id = p_org_id and j.terms @> p_terms and j.terms @> p_slice
        limit p_limit;
    end if;
end
$function$;

comment on function counterfoil.find_journal(text, bigint[], bigint[], integer) is
'Up to p_limit entries of an org that have all the terms, and those of the slice, in no order. Private.';

revoke all on function counterfoil.find_journal(text, bigint[], bigint[], integer) from public;
