-- lock_counters: holds what a change of an org's numbers of queued and active runs will write.
--
-- Promises: {row of the installation's counter, row of the org's}, for add_to_counters(); a part is null where no limits
--           apply and so nothing is counted. Null as a whole when p_wait is false and a row could not be had.
-- Locks:    what hold_limits() takes; then one row of admission_counters for the installation, then one for the org; before
--           any run's.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.lock_counters(p_org_id text, p_wait boolean)
returns smallint[]
language plpgsql
volatile
parallel unsafe
strict
security invoker
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_rules record;
    v_all smallint;
    v_org smallint;
begin
    perform counterfoil.hold_limits();
    select r.org_counted, r.all_counted into strict v_rules from counterfoil.admission_rules(p_org_id) as r;
    if v_rules.all_counted then
        v_all := counterfoil.lock_counter('', p_wait);
        if v_all is null then
            return null;
        end if;
    end if;
    if v_rules.org_counted then
        v_org := counterfoil.lock_counter(p_org_id, p_wait);
        if v_org is null then
            return null;
        end if;
    end if;
    return array[v_all, v_org];
end
$function$;

comment on function counterfoil.lock_counters(text, boolean) is
'Locks a row of the installation''s and of the org''s counter, where they are kept. Private.';

revoke all on function counterfoil.lock_counters(text, boolean) from public;
