-- terminal_logs: the last log lines of an attempt, fit to be kept.
--
-- Promises: {terminalLogLines, terminalLogContexts, terminalLogIds (where ids came), diagnostics (where tagged lines
--           came)}. Lines are trimmed; empty ones, and tagged ones once their diagnostic is lifted, drop out together
--           with their context and id; the last log_tail_limit stay. The three stay aligned throughout.
-- Locks:    nothing.
-- Raises:   RL001 with the JSON path.
-- Since:    1

create or replace function counterfoil.terminal_logs(p_document jsonb, p_where text)
returns jsonb
language plpgsql
volatile
parallel unsafe
strict
security invoker
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_lines jsonb := coalesce(nullif(p_document -> 'terminalLogLines', 'null'::jsonb), '[]'::jsonb);
    v_contexts jsonb := nullif(p_document -> 'terminalLogContexts', 'null'::jsonb);
    v_ids jsonb := nullif(p_document -> 'terminalLogIds', 'null'::jsonb);
    v_limit bigint := counterfoil.setting_integer('log_tail_limit');
    v_diagnostics jsonb;
    v_bad record;
    v_logs jsonb;
begin
    select f.field into v_bad
    from (
        values (1, 'terminalLogLines', v_lines), (2, 'terminalLogContexts', v_contexts), (3, 'terminalLogIds', v_ids)
    ) as f (ordinal, field, items)
    where jsonb_typeof(f.items) <> 'array'
    order by f.ordinal
    limit 1;
    if found then
        perform counterfoil.raise_invalid_argument(
            format('%s.%s must be an array.', p_where, v_bad.field), format('%s.%s', p_where, v_bad.field),
            'Give a JSON array, or leave it out.'
        );
    end if;
    if jsonb_array_length(v_contexts) <> jsonb_array_length(v_lines) then
        perform counterfoil.raise_invalid_argument(
            'terminal log contexts must align with terminal log lines', format('%s.terminalLogContexts', p_where),
            'Give one context, or null, for every line.'
        );
    elsif jsonb_array_length(v_ids) <> jsonb_array_length(v_lines) then
        perform counterfoil.raise_invalid_argument(
            'terminal log ids must align with terminal log lines', format('%s.terminalLogIds', p_where),
            'Give one id, or null, for every line.'
        );
    end if;

    select f.field, i.ordinality - 1 as place, f.allowed into v_bad
    from (
        values
            (1, 'terminalLogLines', v_lines, 'a string', array['string']),
            (2, 'terminalLogContexts', v_contexts, 'an object or null', array['object', 'null']),
            (3, 'terminalLogIds', v_ids, 'a string of 1 to 200 characters or null', array['string', 'null'])
    ) as f (ordinal, field, items, allowed, types)
    cross join lateral jsonb_array_elements(f.items) with ordinality as i (item, ordinality)
    where jsonb_typeof(i.item) <> all (f.types)
        -- The journal knows an entry by its id, and could not take in what came without one of its own.
        or (f.ordinal = 3 and length(i.item #>> '{}') not between 1 and 200)
    order by f.ordinal, i.ordinality
    limit 1;
    if found then
        perform counterfoil.raise_invalid_argument(
            format('%s.%s[%s] must be %s.', p_where, v_bad.field, v_bad.place, v_bad.allowed),
            format('%s.%s[%s]', p_where, v_bad.field, v_bad.place), format('Give %s.', v_bad.allowed)
        );
    end if;

    select i.ordinality - 1 as place into v_bad
    from (
        select e.ordinality, row_number() over (partition by e.id order by e.ordinality) as nth
        from jsonb_array_elements_text(v_ids) with ordinality as e (id, ordinality)
        where e.id is not null
    ) as i
    where i.nth > 1
    order by i.ordinality
    limit 1;
    if found then
        perform counterfoil.raise_invalid_argument(
            format('%s.terminalLogIds[%s] is the id of a line before.', p_where, v_bad.place),
            format('%s.terminalLogIds[%s]', p_where, v_bad.place), 'Give every line an id of its own, or null.'
        );
    end if;

    with entries as materialized (
        select
            l.ordinality as place,
            regexp_replace(l.line, '^\s+|\s+$', '', 'g') as line,
            coalesce(v_contexts -> (l.ordinality - 1)::integer, 'null'::jsonb) as context,
            coalesce(v_ids -> (l.ordinality - 1)::integer, 'null'::jsonb) as id,
            t.name,
            t.document
        from jsonb_array_elements_text(v_lines) with ordinality as l (line, ordinality)
        left join lateral (
            select d.name, d.document
            from counterfoil.read_tagged_line(l.line) as d
            where l.line like '%[diagnostic:%'
        ) as t on true
    ),

    kept as (
        select e.place, e.line, e.context, e.id
        from entries as e
        where e.line <> '' and e.name is null
        order by e.place desc
        limit v_limit
    )

    select
        jsonb_build_object(
            'terminalLogLines', coalesce(jsonb_agg(k.line order by k.place), '[]'::jsonb),
            'terminalLogContexts', coalesce(jsonb_agg(k.context order by k.place), '[]'::jsonb)
        ) || case
            when v_ids is null then '{}'::jsonb
            else jsonb_build_object('terminalLogIds', coalesce(jsonb_agg(k.id order by k.place), '[]'::jsonb))
        end,
        (select jsonb_object_agg(e.name, e.document order by e.place) from entries as e where e.name is not null)
    into v_logs, v_diagnostics
    from kept as k;

    if v_diagnostics is not null then
        v_logs := v_logs || jsonb_build_object('diagnostics', v_diagnostics);
    end if;
    return v_logs;
end
$function$;

comment on function counterfoil.terminal_logs(jsonb, text) is
'Terminal log lines, contexts and ids of a completion or failure: checked, trimmed, aligned, the last ones; diagnostics lifted. Private.';

revoke all on function counterfoil.terminal_logs(jsonb, text) from public;
