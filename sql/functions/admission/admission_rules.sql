-- admission_rules: the limits that apply to an org, and the installation's.
--
-- Promises: one row. An org's own limit wins over the default, field by field. org_counted and all_counted say
--           whether counters are kept. Who counts calls hold_limits() before, in a statement of its own, so that what is
--           read here holds after that wait.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.admission_rules(
    p_org_id text,
    out org_counted boolean,
    out max_queued bigint,
    out max_active bigint,
    out launches_per_minute bigint,
    out max_per_concurrency_key bigint,
    out all_counted boolean,
    out all_max_queued bigint,
    out all_max_active bigint,
    out all_launches_per_minute bigint
)
returns record
language plpgsql
stable
parallel safe
strict
security invoker
set search_path = pg_catalog, pg_temp
as $function$
begin
    -- plpgsql, because it keeps its plan for the session; an SQL function that cannot be inlined plans at each call.
    select
        coalesce(max(a.max_queued) filter (where a.scope = 'org'), max(a.max_queued) filter (where a.scope = 'default')),
        coalesce(max(a.max_active) filter (where a.scope = 'org'), max(a.max_active) filter (where a.scope = 'default')),
        coalesce(
            max(a.launches_per_minute) filter (where a.scope = 'org'),
            max(a.launches_per_minute) filter (where a.scope = 'default')
        ),
        coalesce(
            max(a.max_per_concurrency_key) filter (where a.scope = 'org'),
            max(a.max_per_concurrency_key) filter (where a.scope = 'default'),
            1
        ),
        max(a.max_queued) filter (where a.scope = 'installation'),
        max(a.max_active) filter (where a.scope = 'installation'),
        max(a.launches_per_minute) filter (where a.scope = 'installation')
    into
        max_queued, max_active, launches_per_minute, max_per_concurrency_key, all_max_queued, all_max_active,
        all_launches_per_minute
    from counterfoil.admission_limits as a
    where (a.org_id = '' and a.scope in ('default', 'installation')) or (a.org_id = p_org_id and a.scope = 'org');
    org_counted := num_nonnulls(max_queued, max_active, launches_per_minute) > 0;
    all_counted := num_nonnulls(all_max_queued, all_max_active, all_launches_per_minute) > 0;
end
$function$;

comment on function counterfoil.admission_rules(text) is
'Limits that apply to an org and to the installation, and whether counters are kept for each. Private.';

revoke all on function counterfoil.admission_rules(text) from public;
