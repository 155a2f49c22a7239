-- search_journal: looks through an org's journal, page by page.
--
-- Promises: rows of kind entry, at most p_limit, and one last row that says how to go on: more (there may be further ones:
--           ask again with its cursor as p_before), pending (p_order position: all that is indexed, more is to come: ask
--           again later with its cursor) or end (its cursor, with p_order position, finds what comes later). A page may be
--           short, even empty, and end with more: the work of one call is bounded. Each entry's own cursor works as well.
--           Whatever was there when the first page was read comes exactly once, whatever arrives meanwhile.
--           p_mode words: all words of p_query, in any order; "quoted text" and punctuated words (10.0.0.1) as they stand.
--           p_mode substring: p_query as it stands. Both whatever the case, in any script. Any text is a valid query; null
--           or blank matches everything. p_order newest: the latest first, by time, within one run by position; position:
--           in the order of the run. occurred_at from p_since up to, not including, p_until.
-- Locks:    nothing.
-- Raises:   RL001 malformed arguments.
-- Since:    1

create or replace function counterfoil.search_journal(
    p_org_id text,
    p_query text default null,
    p_run_id text default null,
    p_channel text default null,
    p_before jsonb default null,
    p_limit integer default 50,
    p_level text default null,
    p_since timestamptz default null,
    p_until timestamptz default null,
    p_mode text default 'words',
    p_order text default 'newest'
)
returns table (
    kind text,
    run_id text,
    channel text,
    "position" bigint,
    occurred_at timestamptz,
    level text,
    producer_attempt integer,
    event_id text,
    line text,
    context jsonb,
    details jsonb,
    highlights jsonb,
    cursor jsonb
)
language plpgsql
stable
parallel safe
called on null input
security definer
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_forwards boolean := p_order = 'position';
    v_since timestamptz := coalesce(p_since, '-infinity');
    v_until timestamptz := coalesce(p_until, 'infinity');
    v_at timestamptz;
    v_horizon bigint := 9223372036854775807;
    v_query record;
    v_terms bigint[];
    v_page record;
    v_last counterfoil.run_journal;
begin
    perform counterfoil.check_id(p_org_id, 'p_org_id');
    perform counterfoil.check_limit(p_limit, 1, 1000, 'p_limit');
    if p_run_id is not null then
        perform counterfoil.check_id(p_run_id, 'p_run_id');
    end if;
    if p_mode is null or p_mode not in ('words', 'substring') then
        perform counterfoil.raise_invalid_argument('p_mode is unknown.', 'p_mode', 'Give words or substring.');
    end if;
    if p_order is null or p_order not in ('newest', 'position') then
        perform counterfoil.raise_invalid_argument('p_order is unknown.', 'p_order', 'Give newest or position.');
    end if;
    if v_forwards and p_run_id is null then
        perform counterfoil.raise_invalid_argument(
            'Positions are those of one run.', 'p_order', 'Give p_run_id as well, or order by newest.'
        );
    end if;
    if p_channel is not null and p_channel not in ('log', 'progress', 'receipt') then
        perform counterfoil.raise_invalid_argument(
            'p_channel is unknown.', 'p_channel', 'Give log, progress or receipt; leave p_channel out for any.'
        );
    end if;
    if p_before is not null then
        v_at := counterfoil.event_time(p_before -> 'at');
        if coalesce(
            v_at is null
            or jsonb_typeof(p_before -> 'runId') <> 'string' or jsonb_typeof(p_before -> 'channel') <> 'string'
            or p_before ->> 'position' !~ '^-?[0-9]{1,18}$',
            true
        ) then
            perform counterfoil.raise_invalid_argument(
                'p_before is no cursor.', 'p_before', 'Give the cursor of a row of the page before; null for the first page.'
            );
        end if;
    end if;

    select q.words, q.needles into v_query
    from counterfoil.journal_query(p_query, p_mode) as q;
    v_terms := array(
        select counterfoil.journal_mark(p_org_id, 'word', w.word) from unnest(v_query.words) as w (word)
    );
    if p_channel is not null then
        v_terms := v_terms || counterfoil.journal_mark(p_org_id, 'channel', p_channel);
    end if;
    if p_level is not null then
        v_terms := v_terms || counterfoil.journal_mark(p_org_id, 'level', lower(p_level));
    end if;

    if p_run_id is null then
        select s.entries, s.looked_to into v_page
        from counterfoil.search_org_journal(
            p_org_id, v_terms, v_query.needles, v_since,
            least(v_at, v_until),
            case when v_at < v_until then p_before ->> 'runId' else '' end,
            case when v_at < v_until then p_before ->> 'channel' else '' end,
            case when v_at < v_until then (p_before ->> 'position')::bigint else 0 end,
            p_limit
        ) as s;
    else
        if v_forwards then
            v_horizon := counterfoil.journal_horizon(p_org_id, p_run_id);
        end if;
        select s.entries, s.looked_to into v_page
        from counterfoil.search_one_run(
            p_org_id, p_run_id, v_terms, v_query.needles, v_since, v_until,
            coalesce((p_before ->> 'position')::bigint, case when v_forwards then 0 else 9223372036854775807 end),
            coalesce(p_before ->> 'channel', ''), v_forwards, v_horizon, p_limit
        ) as s;
    end if;

    return query
    select
        'entry', e.run_id, e.channel, e.position, e.occurred_at, e.level, e.producer_attempt, e.event_id, e.line, e.context,
        e.details, counterfoil.highlight_line(e.line, v_query.words, v_query.needles),
        counterfoil.journal_cursor(e.occurred_at, e.run_id, e.channel, e.position)
    from unnest(v_page.entries) with ordinality as e
    order by e.ordinality;

    kind := 'more';
    cursor := v_page.looked_to;
    if cursor is null then
        v_last := v_page.entries[cardinality(v_page.entries)];
        cursor := p_before;
        if v_last.org_id is not null then
            cursor := counterfoil.journal_cursor(v_last);
        end if;
        if cardinality(v_page.entries) < p_limit then
            kind := case when v_horizon < 9223372036854775807 then 'pending' else 'end' end;
        end if;
    end if;
    return next;
end
$function$;

comment on function counterfoil.search_journal(
    text, text, text, text, jsonb, integer, text, timestamptz, timestamptz, text, text
) is
'Entries of an org''s journal that match: words or a substring, run, channel, level, time; newest first, or by position within a run. Rows of kind entry with their highlights ([[start, length], …], characters from 0) and cursor, then one of kind more, pending or end whose cursor goes on as p_before.';

revoke all on function counterfoil.search_journal(
    text, text, text, text, jsonb, integer, text, timestamptz, timestamptz, text, text
) from public;
