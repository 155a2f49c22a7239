-- set_admission_limits: changes what an org, orgs without limits of their own, or all orgs together may launch.
--
-- Promises: p_scope org (of p_org_id), default or installation (p_org_id null or empty). p_limits is an object with maxQueued,
--           maxActive, launchesPerMinute, maxPerConcurrencyKey: a whole number sets the limit, null removes it, an absent one stays.
--           Runs already admitted stay. The change is in the audit trail. Answers the limits that now stand in that row.
-- Locks:    admission_limits in ACCESS EXCLUSIVE mode: it waits for admissions under way and holds up new ones; then
--           limits_version, and what recount_admission locks.
-- Raises:   RL001 malformed arguments, with DETAIL such as p_limits.maxQueued; RL005 read_committed_needed.
-- Since:    1

create or replace function counterfoil.set_admission_limits(p_org_id text, p_scope text, p_limits jsonb)
returns jsonb
language plpgsql
volatile
parallel unsafe
called on null input
security definer
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_org_id text := coalesce(p_org_id, '');
    v_field text;
    v_before jsonb;
    v_after jsonb;
    v_now timestamptz;
begin
    if p_scope is null or p_scope not in ('org', 'default', 'installation') then
        perform counterfoil.raise_invalid_argument(
            'p_scope is no scope of limits.', 'p_scope', 'Give org, default or installation.'
        );
    end if;
    if p_scope = 'org' then
        perform counterfoil.check_id(v_org_id, 'p_org_id');
    elsif v_org_id <> '' then
        perform counterfoil.raise_invalid_argument(
            format('The limits of scope %s belong to no org.', p_scope), 'p_org_id', 'Leave p_org_id null, or give scope org.'
        );
    end if;
    if p_limits is null or jsonb_typeof(p_limits) <> 'object' then
        perform counterfoil.raise_invalid_argument(
            'p_limits is no object.', 'p_limits', 'Give an object such as {"maxQueued": 1000}.'
        );
    end if;
    select l.key
    into v_field
    from jsonb_each(p_limits) as l
    where case
        when l.key not in ('maxQueued', 'maxActive', 'launchesPerMinute', 'maxPerConcurrencyKey') then true
        when l.key = 'maxPerConcurrencyKey' and p_scope = 'installation' then l.value <> 'null'::jsonb
        when l.value = 'null'::jsonb then false
        else
            jsonb_typeof(l.value) <> 'number' or l.value::text !~ '^[0-9]{1,15}$'
            or (l.key = 'maxPerConcurrencyKey' and l.value::text ~ '^0+$')
    end
    order by l.key
    limit 1;
    if found then
        perform counterfoil.raise_invalid_argument(
            format('p_limits.%s is unknown or not allowed.', v_field), 'p_limits.' || v_field,
            'Whole numbers from 0, or null for none: maxQueued, maxActive, launchesPerMinute; from 1, but not for the '
            'installation: maxPerConcurrencyKey.'
        );
    end if;

    -- The recount must see what was committed while it waited for the lock.
    if current_setting('transaction_isolation') <> 'read committed' then
        perform counterfoil.raise_invalid_state(
            format('Limits cannot change in a %s transaction.', current_setting('transaction_isolation')),
            'read_committed_needed', 'Repeat the call in a transaction of isolation level read committed.'
        );
    end if;

    -- Taken at once, not by recount_admission later: two who write first and then wait for each other would never end.
    lock table counterfoil.admission_limits in access exclusive mode;
    v_now := clock_timestamp();
    insert into counterfoil.admission_limits as a (org_id, scope, changed_at)
    values (v_org_id, p_scope, v_now)
    on conflict on constraint admission_limits_pkey do nothing;
    select counterfoil.limits_document(a)
    into v_before
    from counterfoil.admission_limits as a
    where a.org_id = v_org_id and a.scope = p_scope
    for no key update;

    v_after := v_before || p_limits;
    if v_after <> v_before then
        update counterfoil.admission_limits as a
        set
            max_queued = (v_after ->> 'maxQueued')::bigint,
            max_active = (v_after ->> 'maxActive')::bigint,
            launches_per_minute = (v_after ->> 'launchesPerMinute')::bigint,
            max_per_concurrency_key = (v_after ->> 'maxPerConcurrencyKey')::bigint,
            changed_at = v_now
        where a.org_id = v_org_id and a.scope = p_scope;
        update counterfoil.limits_version as v set version = v.version + 1;
        perform counterfoil.recount_admission(v_org_id, p_scope);
        perform counterfoil.record_audit(
            v_org_id, 'set_admission_limits', jsonb_build_object('scope', p_scope), null,
            jsonb_build_object('before', v_before, 'after', v_after), v_now
        );
    end if;

    return v_after;
end
$function$;

comment on function counterfoil.set_admission_limits(text, text, jsonb) is
'Changes admission limits of an org, of orgs without their own (default), or of the installation: {maxQueued, maxActive, launchesPerMinute, maxPerConcurrencyKey}. Answers the limits that now stand.';

revoke all on function counterfoil.set_admission_limits(text, text, jsonb) from public;
