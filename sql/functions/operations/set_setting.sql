-- set_setting: changes a setting.
--
-- Promises: the value is of the setting's kind and within its bounds; null (SQL or JSON) goes back to the default. The change
--           is in the audit trail, with the value before and after. Answers the value that now applies.
-- Locks:    the setting's row.
-- Raises:   RL001 a value of the wrong kind or out of bounds; RL002 setting_not_found.
-- Since:    1

create or replace function counterfoil.set_setting(p_name text, p_value jsonb)
returns jsonb
language plpgsql
volatile
parallel unsafe
called on null input
security definer
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_value jsonb := nullif(p_value, 'null'::jsonb);
    v_old record;
    v_now timestamptz;
begin
    perform counterfoil.check_id(p_name, 'p_name');
    select s.value, s.default_value, s.kind, s.minimum, s.maximum, s.unit
    into v_old
    from counterfoil.settings as s
    where s.name = p_name
    for update;
    if not found then
        perform counterfoil.raise_not_found(
            'There is no such setting.', 'setting_not_found', 'settings_list() names them all.'
        );
    end if;

    if v_value is not null then
        if jsonb_typeof(v_value) <> jsonb_typeof(v_old.default_value) then
            perform counterfoil.raise_invalid_argument(
                format('%s takes %s, not a JSON %s.', p_name, v_old.kind, jsonb_typeof(v_value)), 'p_value',
                format('The default is %s.', v_old.default_value)
            );
        end if;
        if v_old.kind = 'integer' then
            if
                (v_value #>> '{}')::numeric <> trunc((v_value #>> '{}')::numeric)
                or coalesce((v_value #>> '{}')::numeric < v_old.minimum, false)
                or coalesce((v_value #>> '{}')::numeric > v_old.maximum, false)
            then
                perform counterfoil.raise_invalid_argument(
                    format('%s cannot be %s.', p_name, left(v_value::text, 40)), 'p_value',
                    format('Give a whole number of %s from %s to %s.', v_old.unit, v_old.minimum, v_old.maximum)
                );
            end if;
            v_value := to_jsonb(trunc((v_value #>> '{}')::numeric));
        end if;
    end if;

    if v_value is distinct from v_old.value then
        v_now := clock_timestamp();
        update counterfoil.settings as s
        set value = v_value, changed_at = v_now, changed_by = session_user
        where s.name = p_name;
        perform counterfoil.record_audit(
            '', 'set_setting', jsonb_build_object('setting', p_name), null,
            jsonb_build_object('before', v_old.value, 'after', v_value), v_now
        );
    end if;

    return coalesce(v_value, v_old.default_value);
end
$function$;

comment on function counterfoil.set_setting(text, jsonb) is
'Changes setting p_name to p_value, or back to its default with null; validated and audited. Answers the value that applies.';

revoke all on function counterfoil.set_setting(text, jsonb) from public;
