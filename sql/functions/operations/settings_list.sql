-- settings_list: every setting, for the person who tunes.
--
-- Promises: all settings by name: the value that applies, the default, whether it was changed, when and by whom, the unit,
--           the bounds and what it means.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.settings_list()
returns table (
    name text,
    value jsonb,
    default_value jsonb,
    kind text,
    minimum numeric,
    maximum numeric,
    unit text,
    meaning text,
    changed_at timestamptz,
    changed_by text
)
language sql
stable
parallel safe
called on null input
security definer
set search_path = pg_catalog, pg_temp
as $function$
    select
        s.name, coalesce(s.value, s.default_value), s.default_value, s.kind, s.minimum, s.maximum, s.unit, s.meaning,
        s.changed_at, s.changed_by
    from counterfoil.settings as s
    order by s.name
$function$;

comment on function counterfoil.settings_list() is
'Every setting: the value that applies, its default, kind, bounds, unit, meaning, and who changed it when.';

revoke all on function counterfoil.settings_list() from public;
