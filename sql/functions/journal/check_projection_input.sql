-- check_projection_input: refuses a deferred payload that cannot be turned into journal entries.
--
-- Promises: returns only when every list the journal reads is a list of the right things, and contexts and ids
--           align with their lines. Reads the payload only; names the place, never the content.
-- Locks:    nothing.
-- Raises:   P0001 with the JSON path as DETAIL.
-- Since:    1

create or replace function counterfoil.check_projection_input(p_payload jsonb)
returns void
language plpgsql
immutable
parallel safe
called on null input
security invoker
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_wrong record;
begin
    with lists as (
        select l.path, l.value, l.holds
        from (
            values
            ('$.events', p_payload -> 'events', 'object'),
            ('$.terminalProgressEvents', p_payload -> 'terminalProgressEvents', 'object'),
            ('$.receipts', p_payload -> 'receipts', 'object')
        ) as l (path, value, holds)
        where jsonb_typeof(l.value) <> 'null'
    ),

    items as (
        select format('%s[%s]', l.path, i.ordinality - 1) as path, i.value
        from lists as l
        cross join lateral jsonb_array_elements(
            case jsonb_typeof(l.value) when 'array' then l.value else '[]' end
        ) with ordinality as i (value, ordinality)
    ),

    groups as (
        select '$.lines' as path, p_payload -> 'lines' as lines,
            '$.lineContexts' as contexts_path, p_payload -> 'lineContexts' as contexts,
            '$.lineIds' as ids_path, p_payload -> 'lineIds' as ids
        union all
        select '$.terminalLogLines', p_payload -> 'terminalLogLines',
            '$.terminalLogContexts', p_payload -> 'terminalLogContexts',
            '$.terminalLogIds', p_payload -> 'terminalLogIds'
        union all
        select i.path || '.lines', i.value -> 'lines',
            i.path || '.lineContexts', i.value -> 'lineContexts',
            i.path || '.lineIds', i.value -> 'lineIds'
        from items as i
        where jsonb_typeof(i.value) = 'object'
    ),

    known as (
        select
            g.path, nullif(g.lines, 'null') as lines,
            g.contexts_path, nullif(g.contexts, 'null') as contexts,
            g.ids_path, nullif(g.ids, 'null') as ids
        from groups as g
    ),

    wrong as (
        select 1 as rank, l.path, 'is no list' as what from lists as l where jsonb_typeof(l.value) <> 'array'
        union all
        select 2, i.path, 'is no object' from items as i where jsonb_typeof(i.value) <> 'object'
        union all
        select 3, g.path, 'is no list' from known as g where jsonb_typeof(g.lines) <> 'array'
        union all
        select 4, c.path, 'is no list'
        from known as g
        cross join lateral (values (g.contexts_path, g.contexts), (g.ids_path, g.ids)) as c (path, value)
        where jsonb_typeof(c.value) <> 'array'
        union all
        select 5, format('%s[%s]', g.path, e.ordinality - 1), 'is no string'
        from known as g
        cross join lateral jsonb_array_elements(
            case jsonb_typeof(g.lines) when 'array' then g.lines else '[]' end
        ) with ordinality as e (value, ordinality)
        where jsonb_typeof(e.value) <> 'string'
        union all
        select 6, format('%s[%s]', g.ids_path, e.ordinality - 1), 'is neither an id of 1 to 200 characters nor null'
        from known as g
        cross join lateral jsonb_array_elements(
            case jsonb_typeof(g.ids) when 'array' then g.ids else '[]' end
        ) with ordinality as e (value, ordinality)
        where e.value <> 'null'
            and (jsonb_typeof(e.value) <> 'string' or length(e.value #>> '{}') not between 1 and 200)
        union all
        select 7, c.path, 'does not align with the lines'
        from known as g
        cross join lateral (values (g.contexts_path, g.contexts), (g.ids_path, g.ids)) as c (path, value)
        where jsonb_typeof(c.value) = 'array'
            and jsonb_array_length(c.value)
            <> case jsonb_typeof(g.lines) when 'array' then jsonb_array_length(g.lines) else 0 end
        union all
        select 8, '$.producerAttempt', 'is no whole number from 0 to 2147483647'
        where p_payload -> 'producerAttempt' is not null
            and not (p_payload ->> 'producerAttempt' ~ '^[0-9]{1,9}$')
            and p_payload -> 'producerAttempt' <> 'null'
        union all
        select 9, i.path || '.firstPosition', 'is no whole number'
        from (
            select i.path, i.value from items as i
            union all
            select '$', p_payload
        ) as i
        where i.value -> 'firstPosition' is not null and not (i.value ->> 'firstPosition' ~ '^[0-9]{1,15}$')
    )

    select w.path, w.what into v_wrong
    from wrong as w
    order by w.rank, w.path
    limit 1;

    if v_wrong.path is not null then
        perform counterfoil.raise_invalid_projection(
            format('%s of the deferred fact %s.', v_wrong.path, v_wrong.what), v_wrong.path,
            'The fact can never be materialised: skip it, and mend its producer.'
        );
    end if;
end
$function$;

comment on function counterfoil.check_projection_input(jsonb) is
'Refuses a deferred payload whose lists are malformed or misaligned (P0001, DETAIL the JSON path). Private.';

revoke all on function counterfoil.check_projection_input(jsonb) from public;
