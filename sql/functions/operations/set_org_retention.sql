-- set_org_retention: lets an org keep things for a time of its own.
--
-- Promises: p_seconds stands in for the setting p_name (log_retention, outbox_retention, journal_retention,
--           ledger_retention or receipt_retention) where that org is concerned; null goes back to the setting. The change
--           is in the org's audit trail, with the value before and after. Answers the seconds that now apply. What is past
--           them goes with the next batches of maintain(); what is gone does not come back.
-- Locks:    the org's row of that name.
-- Raises:   RL001 an unknown name, or seconds out of the setting's bounds.
-- Since:    1

create or replace function counterfoil.set_org_retention(p_org_id text, p_name text, p_seconds bigint)
returns bigint
language plpgsql
volatile
parallel unsafe
called on null input
security definer
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_setting record;
    v_before bigint;
    v_now timestamptz;
begin
    perform counterfoil.check_id(p_org_id, 'p_org_id');
    if coalesce(
        p_name not in ('log_retention', 'outbox_retention', 'journal_retention', 'ledger_retention', 'receipt_retention'),
        true
    ) then
        perform counterfoil.raise_invalid_argument(
            'p_name is no retention.', 'p_name',
            'Give log_retention, outbox_retention, journal_retention, ledger_retention or receipt_retention.'
        );
    end if;
    if p_seconds is not null then
        select s.minimum::bigint as minimum, s.maximum::bigint as maximum into v_setting
        from counterfoil.settings as s
        where s.name = p_name;
        perform counterfoil.check_limit(p_seconds, v_setting.minimum, v_setting.maximum, 'p_seconds');
    end if;

    select o.seconds into v_before
    from counterfoil.org_retention as o
    where o.org_id = p_org_id and o.name = p_name
    for update;
    v_now := clock_timestamp();
    if p_seconds is null then
        delete from counterfoil.org_retention as o
        where o.org_id = p_org_id and o.name = p_name;
    elsif v_before is distinct from p_seconds then
        insert into counterfoil.org_retention (org_id, name, seconds, changed_at, changed_by)
        values (p_org_id, p_name, p_seconds, v_now, session_user)
        on conflict (org_id, name) do update
        set seconds = excluded.seconds, changed_at = excluded.changed_at, changed_by = excluded.changed_by;
    end if;
    if v_before is distinct from p_seconds then
        perform counterfoil.record_audit(
            p_org_id, 'set_org_retention', jsonb_build_object('setting', p_name), null,
            jsonb_build_object('before', v_before, 'after', p_seconds), v_now
        );
    end if;
    return coalesce(p_seconds, counterfoil.setting_integer(p_name));
end
$function$;

comment on function counterfoil.set_org_retention(text, text, bigint) is
'Sets how long an org keeps what the setting p_name (log_, outbox_, journal_, ledger_ or receipt_retention) is about, in seconds; null goes back to the setting. Audited. Answers the seconds that apply.';

revoke all on function counterfoil.set_org_retention(text, text, bigint) from public;
