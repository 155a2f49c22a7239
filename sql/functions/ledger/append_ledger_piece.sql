-- append_ledger_piece: takes one piece of a delivery into a run's ledger.
--
-- Promises: proves the delivery, then appends the piece's events at the next positions and brings the snapshot up to
--           date. The same key and piece again answers the same and writes nothing, whether or not the lease is still
--           held: the acknowledgement gives it up while a repeat may be under way. An event that an earlier delivery
--           brought already is not appended twice, nor one of a fact that was appended anew after retention. What is left
--           of a receipt that an operator dissolved may come under the key that the whole had.
-- Locks:    the run's ledgers row, which orders its appends; then what assert_delivery locks.
-- Raises:   RL001 malformed arguments; RL003 other content under the same key and piece, or a known event with other
--           content; RL004 the reasons of assert_delivery; RL005 pieces out of order, or a ledger that has ended.
-- Since:    1

create or replace function counterfoil.append_ledger_piece(
    p_org_id text,
    p_run_id text,
    p_idempotency_key text,
    p_lease_owner text,
    p_events jsonb,
    p_chunk integer,
    p_chunk_count integer,
    p_endpoint text,
    p_launch jsonb
)
returns table (outcome text, first_position bigint, last_position bigint, complete boolean)
language plpgsql
volatile
parallel unsafe
called on null input
security invoker
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_last_position bigint;
    v_last_seq bigint;
    v_last_item integer;
    v_ended_at timestamptz;
    v_digest bytea;
    v_append record;
    v_is_known boolean;
    v_proof record;
    v_piece record;
    v_changed bigint;
    v_size integer;
    v_now timestamptz;
begin
    perform counterfoil.check_id(p_org_id, 'p_org_id');
    perform counterfoil.check_id(p_run_id, 'p_run_id');
    perform counterfoil.check_id(p_lease_owner, 'p_lease_owner');
    if p_idempotency_key is null or length(p_idempotency_key) not between 1 and 500 or p_idempotency_key ~ '[[:cntrl:]]' then
        perform counterfoil.raise_invalid_argument(
            'p_idempotency_key is missing, too long or holds a control character.',
            'p_idempotency_key', 'Give the key that the claim or the freeze answered.'
        );
    end if;
    perform counterfoil.check_limit(p_chunk_count, 1, 1000000, 'p_chunk_count');
    perform counterfoil.check_limit(p_chunk, 1, p_chunk_count, 'p_chunk');
    perform counterfoil.check_ledger_events(p_events, p_endpoint);

    select l.last_position, l.last_seq, l.last_item, l.ended_at
    into v_last_position, v_last_seq, v_last_item, v_ended_at
    from counterfoil.ledgers as l
    where l.org_id = p_org_id and l.run_id = p_run_id
    for no key update;
    if not found then
        -- Undone with everything else when the proof fails.
        v_now := clock_timestamp();
        insert into counterfoil.ledgers as l (org_id, run_id, status, created_at, updated_at)
        values (p_org_id, p_run_id, 'queued', v_now, v_now)
        on conflict on constraint ledgers_pkey do nothing;
        select l.last_position, l.last_seq, l.last_item, l.ended_at
        into v_last_position, v_last_seq, v_last_item, v_ended_at
        from counterfoil.ledgers as l
        where l.org_id = p_org_id and l.run_id = p_run_id
        for no key update;
    end if;

    v_digest := counterfoil.canonical_digest(p_events);
    select a.events_digest, a.chunk_count, a.first_position, a.last_position
    into v_append
    from counterfoil.ledger_appends as a
    where
        a.org_id = p_org_id and a.run_id = p_run_id
        and a.idempotency_key = p_idempotency_key and a.chunk = p_chunk;
    v_is_known := found;
    if v_is_known and v_append.events_digest = v_digest and v_append.chunk_count = p_chunk_count then
        return query
        select 'replayed', v_append.first_position, v_append.last_position, exists (
            select
            from counterfoil.ledger_appends as a
            where
                a.org_id = p_org_id and a.run_id = p_run_id
                and a.idempotency_key = p_idempotency_key and a.chunk = p_chunk_count
        );
        return;
    end if;
    -- A key stands for one content. Only a terminal's does not tell what else goes with it: an operator who skips a fact
    -- dissolves the receipt that held it, and the rest is frozen under the same key. There the proof below decides.
    if v_is_known and not (
        exists (
            select
            from counterfoil.lanes as l
            where
                l.org_id = p_org_id and l.run_id = p_run_id and l.lane = 'lifecycle'
                and l.terminal_seq is not null and l.receipt_key = p_idempotency_key
        )
        -- The delivery log tells of it too, but is not kept for ever.
        and exists (
            select
            from counterfoil.operator_audit as u
            where
                u.org_id = p_org_id and u.action = 'skip_blocked' and u.target ->> 'runId' = p_run_id
                and u.details -> 'receiptDissolved' = 'true'::jsonb
        )
    ) then
        perform counterfoil.raise_identity_conflict(
            format('Piece %s of this delivery was appended with other content.', p_chunk),
            case when v_append.events_digest <> v_digest then 'p_events' else 'p_chunk_count' end,
            'The same idempotency key stands for the same pieces; deliver what was frozen.'
        );
    end if;

    select d.first_index, d.event_total
    into strict v_proof
    from counterfoil.assert_delivery(
        p_org_id, p_run_id, p_lease_owner, p_idempotency_key, p_events, p_chunk, p_chunk_count
    ) as d;

    if v_is_known then
        delete from counterfoil.ledger_appends as a
        where
            a.org_id = p_org_id and a.run_id = p_run_id and a.idempotency_key = p_idempotency_key and a.chunk >= p_chunk;
    end if;

    -- Pieces come in order and leave nothing out: each starts where the one before it ended.
    v_size := jsonb_array_length(p_events);
    select
        count(*) filter (where a.chunk_count = p_chunk_count and a.chunk < p_chunk) as pieces,
        coalesce(sum(a.events), 0) as events
    into v_append
    from counterfoil.ledger_appends as a
    where a.org_id = p_org_id and a.run_id = p_run_id and a.idempotency_key = p_idempotency_key;
    if v_append.pieces <> p_chunk - 1 then
        perform counterfoil.raise_invalid_state(
            format('Piece %s of %s came before its predecessors.', p_chunk, p_chunk_count),
            'chunk_out_of_order', 'Append the pieces of a delivery one after the other, all with the same p_chunk_count.'
        );
    end if;
    if
        v_proof.first_index <> v_append.events
        or (p_chunk = p_chunk_count and v_proof.first_index + v_size <> v_proof.event_total)
    then
        perform counterfoil.raise_lease_lost(
            format('Piece %s of %s does not continue where its predecessor ended.', p_chunk, p_chunk_count),
            'projected_events_mismatch', 'Cut the projected events into pieces without gap or overlap.'
        );
    end if;

    -- What the piece brings that is new, and what that makes of the snapshot. Facts come in order, so what does not lie
    -- behind the last event is known; what does may still be, since the ledger outlives the outbox, and an id that
    -- retention has forgotten there may come again.
    with piece as materialized (
        select
            e.ordinality,
            e.event,
            e.event ->> 'type' as event_type,
            e.event -> 'data' as data,
            (e.event ->> 'seq')::bigint as seq,
            (e.event ->> 'item')::integer as item,
            (e.event ->> 'occurredAt')::timestamptz as occurred_at,
            counterfoil.event_kind(e.event ->> 'type') = 'terminal' as ends
        from jsonb_array_elements(p_events) with ordinality as e (event, ordinality)
        where
            ((e.event ->> 'seq')::bigint, (e.event ->> 'item')::integer) > (v_last_seq, v_last_item)
            and (
                -- Ordered, so that no index without the order will do: one of those reads the run's whole history.
                select b.position
                from counterfoil.ledger_events as b
                where
                    b.org_id = p_org_id and b.run_id = p_run_id
                    and b.event_id between e.event ->> 'eventId' and e.event ->> 'eventId'
                    and b.item = (e.event ->> 'item')::integer
                order by b.event_id
                limit 1
            ) is null
    )

    select
        count(*) as fresh,
        array_agg(p.event order by p.ordinality) as events,
        max(p.seq) as last_seq,
        (array_agg(p.item order by p.ordinality desc))[1] as last_item,
        count(*) filter (where p.ends) as terminals,
        coalesce(bool_or(p.ends) filter (where p.ordinality = v_size), false) as ends_last,
        min(p.occurred_at) as first_at,
        min(p.occurred_at) filter (where p.event_type = 'run.started') as started_at,
        max(p.occurred_at) filter (where p.ends) as ended_at,
        (array_agg(
            case p.event_type
                when 'run.created' then 'queued' when 'run.started' then 'running' when 'run.resumed' then 'running'
                else split_part(p.event_type, '.', 2)
            end order by p.ordinality desc
        ) filter (
            where p.event_type in ('run.created', 'run.started', 'run.resumed', 'run.waiting') or p.ends
        ))[1] as status,
        (array_agg(p.data order by p.ordinality desc) filter (where p.event_type = 'run.progress'))[1] as progress,
        (array_agg(p.data order by p.ordinality desc) filter (where p.event_type = 'run.waiting'))[1] as waiting,
        (array_agg(p.data order by p.ordinality) filter (where p.event_type in ('run.created', 'run.started')))[1] as launched,
        (array_agg(p.data order by p.ordinality desc) filter (where p.ends))[1] as terminal
    into v_piece
    from piece as p;

    if v_piece.fresh < v_size then
        select e.ordinality - 1
        into v_changed
        from jsonb_array_elements(p_events) with ordinality as e (event, ordinality)
        left join lateral (
            select b.event
            from counterfoil.ledger_events as b
            where
                b.org_id = p_org_id and b.run_id = p_run_id
                and b.event_id = e.event ->> 'eventId' and b.item = (e.event ->> 'item')::integer
            limit 1
        ) as k on true
        where case
            when ((e.event ->> 'seq')::bigint, (e.event ->> 'item')::integer) <= (v_last_seq, v_last_item)
                then k.event is distinct from e.event
            -- Appended anew, it has another place and time.
            else k.event - array['seq', 'occurredAt'] <> e.event - array['seq', 'occurredAt']
        end
        order by e.ordinality
        limit 1;
        if found then
            perform counterfoil.raise_identity_conflict(
                format('p_events[%s] is in the ledger with other content.', v_changed),
                format('p_events[%s]', v_changed), 'An event never changes once it is in the ledger.'
            );
        end if;
    end if;
    if v_piece.fresh > 0 and v_ended_at is not null then
        perform counterfoil.raise_invalid_state(
            'The run''s ledger has ended.', 'ledger_ended', 'Nothing follows a terminal event.'
        );
    end if;
    if v_piece.terminals > 1 or (v_piece.terminals = 1 and not v_piece.ends_last) then
        perform counterfoil.raise_invalid_state(
            'A terminal event is not the last one.', 'terminal_not_last', 'A run ends once, and nothing follows its terminal event.'
        );
    end if;
    if
        v_piece.fresh > 0
        and ((p_endpoint = 'created' and v_last_position > 0) or (p_endpoint = 'started' and v_last_position > 1))
    then
        perform counterfoil.raise_invalid_state(
            format('The run''s ledger has events already; %s comes first.', p_events -> 0 ->> 'type'),
            'start_not_first', 'A start event cannot follow another event.'
        );
    end if;

    v_now := clock_timestamp();
    insert into counterfoil.ledger_events as k (
        org_id, run_id, position, event_type, event_id, item, occurred_at, event, appended_at
    )
    select
        p_org_id, p_run_id, v_last_position + e.ordinality, e.event ->> 'type',
        e.event ->> 'eventId', (e.event ->> 'item')::integer, (e.event ->> 'occurredAt')::timestamptz, e.event, v_now
    from unnest(v_piece.events) with ordinality as e (event, ordinality)
    order by e.ordinality;

    insert into counterfoil.ledger_appends (
        org_id, run_id, idempotency_key, chunk, chunk_count, events_digest, events,
        first_position, last_position, lease_owner, appended_at
    )
    values (
        p_org_id, p_run_id, p_idempotency_key, p_chunk, p_chunk_count, v_digest, v_size,
        v_last_position + 1, v_last_position + v_piece.fresh, p_lease_owner, v_now
    );

    if v_piece.fresh > 0 then
        update counterfoil.ledgers as l
        set
            last_position = l.last_position + v_piece.fresh,
            event_count = l.event_count + v_piece.fresh,
            last_seq = v_piece.last_seq,
            last_item = v_piece.last_item,
            status = coalesce(v_piece.status, l.status),
            play_id = coalesce(l.play_id, v_piece.launched ->> 'playId', p_launch ->> 'playId'),
            play_name = coalesce(l.play_name, v_piece.launched ->> 'playName', p_launch ->> 'playName'),
            launch = coalesce(l.launch, p_launch),
            created_at = case when v_last_position = 0 then v_piece.first_at else l.created_at end,
            started_at = coalesce(l.started_at, v_piece.started_at),
            ended_at = coalesce(l.ended_at, v_piece.ended_at),
            progress = coalesce(v_piece.progress, l.progress),
            waiting = case coalesce(v_piece.status, l.status) when 'waiting' then coalesce(v_piece.waiting, l.waiting) end,
            result_summary = coalesce(nullif(v_piece.terminal -> 'resultSummary', 'null'::jsonb), l.result_summary),
            error = coalesce(nullif(v_piece.terminal -> 'error', 'null'::jsonb), l.error),
            updated_at = v_now
        where l.org_id = p_org_id and l.run_id = p_run_id;
    end if;

    return query
    select 'appended', v_last_position + 1, v_last_position + v_piece.fresh, p_chunk = p_chunk_count;
end
$function$;

comment on function counterfoil.append_ledger_piece(text, text, text, text, jsonb, integer, integer, text, jsonb) is
'Proves one piece of a delivery and appends its events to the run''s ledger, once per idempotency key and piece. p_endpoint is created, started or events; p_launch is stored with run.started. Private.';

revoke all on function counterfoil.append_ledger_piece(text, text, text, text, jsonb, integer, integer, text, jsonb) from public;
