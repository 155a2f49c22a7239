-- sanitize_payload: a JSON document fit to be kept.
--
-- Promises: values under a secret's name and secrets inside strings become [redacted], also where a name and its value lie
--           side by side, as headers often do ({"name": …, "value": …}, [name, value]) and arguments of programs
--           (["--password", value]); what lies deeper than p_max_depth
--           containers becomes [truncated]. A document without either comes back as it is. Null for null.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.sanitize_payload(p_document jsonb, p_max_depth integer)
returns jsonb
language plpgsql
stable
parallel safe
strict
security invoker
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_text text := p_document::text;
    v_kind text := jsonb_typeof(p_document);
    v_containers integer;
    v_clean jsonb;
    -- The object is one header, variable or field of a form, and its name is a secret's.
    v_named boolean := p_document ?| array['value', 'Value', 'ParameterValue']
        and p_document ?| array['name', 'key', 'header', 'Name', 'Key', 'ParameterKey']
        and counterfoil.is_secret_name(coalesce(
            p_document ->> 'name', p_document ->> 'key', p_document ->> 'header',
            p_document ->> 'Name', p_document ->> 'Key', p_document ->> 'ParameterKey', ''
        ));
    -- Beside a user a "pass" is a password; elsewhere it counts what passed.
    v_login boolean := p_document ? 'pass' and p_document ?| array['user', 'username', 'login', 'email'];
begin
    if v_kind = 'string' then
        return to_jsonb(counterfoil.redact_text(p_document #>> '{}'));
    elsif v_kind not in ('object', 'array') then
        return p_document;
    elsif p_max_depth < 1 then
        return '"[truncated]"'::jsonb;
    end if;

    -- Fewer brackets than levels allowed cannot nest too deep: spares the walk.
    v_containers := length(v_text) - length(translate(v_text, '{[', ''));
    if
        not counterfoil.looks_secret(v_text)
        and (
            v_containers <= p_max_depth
            or not jsonb_path_exists(
                p_document,
                format('strict $.**{%s to last} ? (@.type() == "object" || @.type() == "array")', p_max_depth)::jsonpath
            )
        )
    then
        return p_document;
    end if;

    -- Containers alone are walked by a call of their own.
    if
        v_kind = 'array' and jsonb_array_length(p_document) = 2
        and jsonb_typeof(p_document -> 0) = 'string' and jsonb_typeof(p_document -> 1) = 'string'
        and p_document ->> 0 ~* '^((proxy-)?authorization|(set-)?cookie|x-[a-z-]*(key|token|secret|password))$'
    then
        return jsonb_set(p_document, '{1}', '"[redacted]"');
    elsif v_kind = 'array' then
        select jsonb_agg(
            case
                when
                    e.argument like '--%' and jsonb_typeof(e.value) in ('string', 'number') and e.value #>> '{}' not like '-%'
                    and counterfoil.is_secret_name(e.argument)
                    then '"[redacted]"'::jsonb
                when jsonb_typeof(e.value) in ('object', 'array') then counterfoil.sanitize_payload(e.value, p_max_depth - 1)
                when jsonb_typeof(e.value) = 'string' then to_jsonb(counterfoil.redact_text(e.value #>> '{}'))
                else e.value
            end order by e.ordinality
        )
        into v_clean
        from (
            select l.value, l.ordinality, lag(l.value #>> '{}') over (order by l.ordinality) as argument
            from jsonb_array_elements(p_document) with ordinality as l (value, ordinality)
        ) as e;
    else
        -- Names that are secrets themselves would all be [redacted], and all but one entry lost: the others get a number.
        select jsonb_object_agg(case when k.again > 1 then format('%s (%s)', k.kept, k.again) else k.kept end, case
            when jsonb_typeof(k.value) in ('null', 'boolean') or k.value = '""'::jsonb then k.value
            when k.suspect and counterfoil.is_secret_name(k.key) or k.key in ('value', 'Value', 'ParameterValue') and v_named
                or k.key = 'pass' and v_login
                -- Name and password in base64, as in docker's config.json.
                or k.key = 'auth' and k.value #>> '{}' ~ '^(?=[^A-Z]*[A-Z])(?=[^0-9]*[0-9])[0-9A-Za-z+/]{12,}=*$' then '"[redacted]"'::jsonb
            when jsonb_typeof(k.value) in ('object', 'array') then counterfoil.sanitize_payload(k.value, p_max_depth - 1)
            when jsonb_typeof(k.value) = 'string' then to_jsonb(counterfoil.redact_text(k.value #>> '{}'))
            else k.value
        end)
        into v_clean
        from (
            select
                n.key, n.value, n.suspect, n.kept,
                row_number() over (partition by n.kept order by n.kept <> n.key, n.key) as again
            from (
                select
                    e.key, e.value, l.suspect,
                    case when l.suspect then counterfoil.redact_text(e.key) else e.key end as kept
                from jsonb_each(p_document) as e
                cross join lateral (select counterfoil.looks_secret(e.key) as suspect offset 0) as l
            ) as n
        ) as k;
    end if;

    return coalesce(v_clean, p_document);
end
$function$;

comment on function counterfoil.sanitize_payload(jsonb, integer) is
'The document with secrets replaced by [redacted] and containers deeper than p_max_depth by [truncated]. Private.';

revoke all on function counterfoil.sanitize_payload(jsonb, integer) from public;
