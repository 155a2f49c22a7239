-- admission_rules: the limits that apply to an org, and the installation's.
--
-- Promises: one row. An org's own limit wins over the default, field by field. org_counted and all_counted say
--           whether counters are kept. Reading the limits keeps ACCESS SHARE on their table until the transaction ends:
--           recount_admission() relies on that to see nobody at work under older limits.
-- Locks:    nothing else.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.admission_rules(p_org_id text)
returns table (
    org_counted boolean,
    max_queued bigint,
    max_active bigint,
    launches_per_minute bigint,
    max_per_concurrency_key bigint,
    all_counted boolean,
    all_max_queued bigint,
    all_max_active bigint,
    all_launches_per_minute bigint
)
language sql
stable
parallel safe
strict
security invoker
set search_path = pg_catalog, pg_temp
as $function$
    select
        num_nonnulls(l.max_queued, l.max_active, l.launches_per_minute) > 0,
        l.max_queued,
        l.max_active,
        l.launches_per_minute,
        coalesce(l.max_per_concurrency_key, 1),
        num_nonnulls(l.all_max_queued, l.all_max_active, l.all_launches_per_minute) > 0,
        l.all_max_queued,
        l.all_max_active,
        l.all_launches_per_minute
    from (
        select
            coalesce(max(a.max_queued) filter (where a.scope = 'org'), max(a.max_queued) filter (where a.scope = 'default'))
                as max_queued,
            coalesce(max(a.max_active) filter (where a.scope = 'org'), max(a.max_active) filter (where a.scope = 'default'))
                as max_active,
            coalesce(
                max(a.launches_per_minute) filter (where a.scope = 'org'),
                max(a.launches_per_minute) filter (where a.scope = 'default')
            ) as launches_per_minute,
            coalesce(
                max(a.max_per_concurrency_key) filter (where a.scope = 'org'),
                max(a.max_per_concurrency_key) filter (where a.scope = 'default')
            ) as max_per_concurrency_key,
            max(a.max_queued) filter (where a.scope = 'installation') as all_max_queued,
            max(a.max_active) filter (where a.scope = 'installation') as all_max_active,
            max(a.launches_per_minute) filter (where a.scope = 'installation') as all_launches_per_minute
        from counterfoil.admission_limits as a
        where (a.org_id = '' and a.scope in ('default', 'installation')) or (a.org_id = p_org_id and a.scope = 'org')
    ) as l
$function$;

comment on function counterfoil.admission_rules(text) is
'Limits that apply to an org and to the installation, and whether counters are kept for each. Private.';

revoke all on function counterfoil.admission_rules(text) from public;
