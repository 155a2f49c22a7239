-- journal_entries: the journal entries that a deferred payload holds.
--
-- Promises: one row an entry, in order: log lines (own, terminal, and those of log.appended events), other events as
--           progress, receipts as receipt. Blank lines drop out together with their context and id.
--           Identity: with p_origin an entry's own id; else, and where it has none, producer attempt, channel and
--           position, the position being the producer's (firstPosition) or else the place within this very fact.
-- Locks:    nothing.
-- Raises:   nothing; check_projection_input has refused what does not fit.
-- Since:    1

create or replace function counterfoil.journal_entries(
    p_event_type text,
    p_seq bigint,
    p_payload jsonb,
    p_origin boolean,
    p_created_at timestamptz
)
returns table (
    identity text,
    channel text,
    "position" bigint,
    producer_attempt integer,
    entry_id text,
    level text,
    occurred_at timestamptz,
    line text,
    context jsonb,
    details jsonb,
    content_digest bytea
)
language plpgsql
stable
parallel safe
called on null input
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set jit = off
as $function$
begin
    -- plpgsql, because it keeps its plan for the session; planning this costs more than a short fact.
    return query
    with events as materialized (
        select e.place, e.ordinality as item, e.value as event
        from (
            select 2 as place, v.value, v.ordinality
            from jsonb_array_elements(
                case jsonb_typeof(p_payload -> 'events') when 'array' then p_payload -> 'events' else '[]' end
            ) with ordinality as v (value, ordinality)
            union all
            select 3, v.value, v.ordinality
            from jsonb_array_elements(
                case jsonb_typeof(p_payload -> 'terminalProgressEvents')
                    when 'array' then p_payload -> 'terminalProgressEvents' else '[]'
                end
            ) with ordinality as v (value, ordinality)
        ) as e
    ),

    -- Only what an entry needs of its group goes along: a copy of the group with each line would be quadratic.
    groups as (
        select
            g.place, g.item, g.lines, g.contexts, g.ids, g.source ->> 'level' as level,
            (g.source ->> 'firstPosition')::bigint as first_position, g.source -> 'occurredAt' as occurred_at
        from (
            select 1 as place, 0::bigint as item, p_payload as source,
                p_payload -> 'lines' as lines, p_payload -> 'lineContexts' as contexts, p_payload -> 'lineIds' as ids
            union all
            select e.place, e.item, e.event, e.event -> 'lines', e.event -> 'lineContexts', e.event -> 'lineIds'
            from events as e
            where e.event ->> 'type' = 'log.appended'
            union all
            select 4, 0, p_payload,
                p_payload -> 'terminalLogLines', p_payload -> 'terminalLogContexts', p_payload -> 'terminalLogIds'
        ) as g
    ),

    logged as (
        select
            g.place, g.item, z.ordinality as nth, 'log' as channel, g.first_position, g.occurred_at, z.id as entry_id,
            btrim(z.line, E' \t\r\n') as line, nullif(z.context, 'null') as context, null::jsonb as details,
            coalesce(z.context ->> 'level', g.level) as level
        from groups as g
        cross join lateral rows from (
            jsonb_array_elements_text(case jsonb_typeof(g.lines) when 'array' then g.lines else '[]' end),
            jsonb_array_elements(case jsonb_typeof(g.contexts) when 'array' then g.contexts else '[]' end),
            jsonb_array_elements_text(case jsonb_typeof(g.ids) when 'array' then g.ids else '[]' end)
        ) with ordinality as z (line, context, id, ordinality)
        where btrim(z.line, E' \t\r\n') <> ''
    ),

    documents as (
        select e.place, e.item, 'progress' as channel, e.event as details, e.event ->> 'type' as name
        from events as e
        where e.event ->> 'type' is distinct from 'log.appended'
        union all
        select 1, 0, 'progress', p_payload - array['deferredProjection', 'searchOnly'], 'run.progress'
        where p_event_type = 'run.progress'
        union all
        select 5, r.ordinality, 'receipt', r.value, concat_ws(' ', r.value ->> 'key', r.value ->> 'status')
        from jsonb_array_elements(
            case jsonb_typeof(p_payload -> 'receipts') when 'array' then p_payload -> 'receipts' else '[]' end
        ) with ordinality as r (value, ordinality)
        where p_event_type = 'step.receipt'
        union all
        select
            5, 0, 'receipt', p_payload - array['deferredProjection', 'searchOnly'],
            concat_ws(' ', p_payload ->> 'key', p_payload ->> 'status')
        where p_event_type = 'step.receipt' and p_payload ->> 'key' is not null
    ),

    ordered as (
        select
            a.*,
            coalesce((p_payload ->> 'producerAttempt')::integer, 0) as attempt,
            row_number() over (partition by a.channel order by a.place, a.item, a.nth) as place_in_fact,
            a.first_position + a.nth - 1 as place_at_origin
        from (
            select
                l.place, l.item, l.nth, l.channel, l.first_position, l.occurred_at, l.entry_id, l.line, l.context,
                l.details, l.level
            from logged as l
            union all
            select
                d.place, d.item, 1, d.channel, (d.details ->> 'firstPosition')::bigint, d.details -> 'occurredAt',
                d.details ->> 'id', coalesce(d.details ->> 'message', nullif(d.name, ''), d.channel), null, d.details,
                d.details ->> 'level'
            from documents as d
        ) as a
    )

    select
        case
            when p_origin and o.entry_id is not null then 'id:' || o.channel || ':' || o.entry_id
            when o.place_at_origin is not null then format('at:%s:%s:%s', o.attempt, o.channel, o.place_at_origin)
            else format('in:%s:%s:%s:%s', o.attempt, o.channel, p_seq, o.place_in_fact)
        end,
        o.channel,
        -- Facts are numbered per run, so that this needs no counter and no lock; 2^20 entries a fact fit between two.
        p_seq * 1048576 + o.place_in_fact,
        o.attempt,
        o.entry_id,
        o.level,
        case when o.occurred_at is null then p_created_at else coalesce(counterfoil.event_time(o.occurred_at), p_created_at) end,
        o.line,
        o.context,
        o.details,
        sha256(convert_to(jsonb_build_array(o.line, o.context, o.details)::text, 'UTF8'))
    from ordered as o
    order by o.channel, o.place_in_fact;
end
$function$;

comment on function counterfoil.journal_entries(text, bigint, jsonb, boolean, timestamptz) is
'Journal entries held by a deferred payload: identity, channel, position, producer attempt, id, level, time, line, context, details and the sha256 of the content. p_origin says whether an entry''s own id identifies it. Private.';

revoke all on function counterfoil.journal_entries(text, bigint, jsonb, boolean, timestamptz) from public;
