-- admit_launches: admits many launches in one call.
--
-- Promises: one row per launch, in the order given, each admitted or replayed; all or none. May span orgs.
-- Locks:    admission_counters where limits apply, then concurrency_keys, then the new runs, each in order.
-- Raises:   RL001, RL008 (DETAIL: p_launches or p_launches[i].field); RL002 parent_run_not_found; RL003 (DETAIL: the
--           fields that differ); RL006 and RL007 when a limit has no room for all.
-- Since:    1

create or replace function counterfoil.admit_launches(p_launches jsonb)
returns table (org_id text, run_id text, outcome text, status text)
language plpgsql
volatile
parallel unsafe
called on null input
security definer
set search_path = pg_catalog, pg_temp
as $function$
begin
    if p_launches is null or jsonb_typeof(p_launches) <> 'array' then
        perform counterfoil.raise_invalid_argument(
            'p_launches must be a JSON array of launches.', 'p_launches', 'Give an array, one object per launch.'
        );
    end if;
    perform counterfoil.check_limit(
        jsonb_array_length(p_launches), 0, counterfoil.setting_integer('launch_batch_max'), 'p_launches'
    );
    return query
    select a.org_id, a.run_id, a.outcome, a.status
    from counterfoil.admit(p_launches, false) as a;
end
$function$;

comment on function counterfoil.admit_launches(jsonb) is
'Admits an array of launches, all or none: one row each, in the order given. Errors name the launch as p_launches[i].';

revoke all on function counterfoil.admit_launches(jsonb) from public;
