-- limit_claims: cuts down what each org may claim to its limit on active runs.
--
-- Promises: the caps, in the order of the orgs, none above the org's room; what is granted is counted as active until
--           return_claims() gives back the rest.
-- Locks:    rows of admission_counters, skipping those that are locked.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.limit_claims(p_org_ids text[], p_caps bigint[])
returns bigint[]
language plpgsql
volatile
parallel unsafe
strict
security invoker
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_caps bigint[] := p_caps;
    v_rules record;
begin
    for v_place in 1..cardinality(p_org_ids) loop
        select r.org_counted, r.max_active into strict v_rules from counterfoil.admission_rules(p_org_ids[v_place]) as r;
        if v_rules.org_counted then
            v_caps[v_place] := counterfoil.take_active_places(p_org_ids[v_place], p_caps[v_place], v_rules.max_active);
        end if;
    end loop;
    return v_caps;
end
$function$;

comment on function counterfoil.limit_claims(text[], bigint[]) is
'Caps of a claim, none above the org''s room for active runs, counted as active. Private.';

revoke all on function counterfoil.limit_claims(text[], bigint[]) from public;
