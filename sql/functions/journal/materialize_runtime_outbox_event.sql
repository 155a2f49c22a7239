-- materialize_runtime_outbox_event: turns a deferred fact's raw input into rows of the journal.
--
-- Promises: proves the caller's live lease first, and again in the statement that writes the payload. Every entry is
--           in the journal once per identity: the same with the same content is skipped, with other content refused.
--           A fact that is materialised already answers its payload. Set-based; nothing is written when it raises.
-- Locks:    no run, no lane; the fact's row in the last statement only, after the indexing.
-- Raises:   RL001; RL002 fact_not_found; RL004 delivery_lease_not_current; P0001 for malformed or conflicting input,
--           with the JSON path or the identity as DETAIL.
-- Since:    1

create or replace function counterfoil.materialize_runtime_outbox_event(
    p_org_id text,
    p_event_id text,
    p_lease_owner text
)
returns jsonb
language plpgsql
volatile
parallel unsafe
called on null input
security definer
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_now timestamptz := clock_timestamp();
    v_fact record;
    v_origin boolean;
    v_entries bigint;
    v_written bigint;
    v_conflict text;
    v_payload jsonb;
begin
    perform counterfoil.check_id(p_org_id, 'p_org_id');
    perform counterfoil.check_id(p_event_id, 'p_event_id');
    perform counterfoil.check_id(p_lease_owner, 'p_lease_owner');

    select o.run_id, o.seq, o.lane, o.event_type, o.deferred, o.payload, o.created_at, l.run_id is not null as leased
    into v_fact
    from counterfoil.outbox as o
    left join counterfoil.lanes as l
        on l.org_id = p_org_id and l.run_id = o.run_id and l.lane = o.lane
        and l.lease_owner = p_lease_owner and l.lease_expires_at > clock_timestamp()
        and o.seq between l.head_seq and l.lease_through_seq
    where o.org_id = p_org_id and o.event_id = p_event_id;

    if v_fact.run_id is null then
        perform counterfoil.raise_not_found(
            'There is no fact of that event id in this org.', 'fact_not_found', 'Check p_org_id and p_event_id.'
        );
    end if;
    if not v_fact.leased then
        perform counterfoil.raise_lease_lost(
            'The fact is not under a live lease of this owner.', 'delivery_lease_not_current', 'Claim the delivery again.'
        );
    end if;
    if not v_fact.deferred then
        return v_fact.payload;
    end if;

    perform counterfoil.check_projection_input(v_fact.payload);

    select a.launch -> 'runtimeLogIdentity' = '"origin"' into v_origin
    from counterfoil.launches as a
    where a.org_id = p_org_id and a.run_id = v_fact.run_id;

    with entries as materialized (
        select e.*
        from counterfoil.journal_entries(
            v_fact.event_type, v_fact.seq, v_fact.payload, coalesce(v_origin, false), v_fact.created_at
        ) as e
    ),

    written as (
        insert into counterfoil.run_journal (
            org_id, run_id, identity, channel, "position", producer_attempt, entry_id, level, occurred_at,
            line, context, details, content_digest, event_id, recorded_at, terms
        )
        select distinct on (e.identity)
            p_org_id, v_fact.run_id, e.identity, e.channel, e."position", e.producer_attempt, e.entry_id, e.level,
            e.occurred_at, e.line, e.context, e.details, e.content_digest, p_event_id, v_now,
            counterfoil.journal_terms(p_org_id, v_fact.run_id, e.channel, e.level, e.occurred_at, e.line)
        from entries as e
        order by e.identity, e."position"
        -- Of any key: who indexes the same fact at once has come to one of them first.
        on conflict do nothing
        returning 1
    )

    select (select count(*) from entries), (select count(*) from written)
    into v_entries, v_written;

    -- What was not written is there already: from an earlier try, another fact, or twice in this one.
    -- A new statement also sees what others committed meanwhile.
    if v_written < v_entries then
        select e.identity into v_conflict
        from counterfoil.journal_entries(
            v_fact.event_type, v_fact.seq, v_fact.payload, coalesce(v_origin, false), v_fact.created_at
        ) as e
        cross join lateral (
            select i.identity, i.content_digest
            from counterfoil.run_journal as i
            where i.org_id = p_org_id and i.run_id = v_fact.run_id and i.identity = e.identity
            union all
            select p.identity, p.content_digest
            from counterfoil.run_journal as p
            where p.org_id = p_org_id and p.run_id = v_fact.run_id and p.position = e.position and p.channel = e.channel
        ) as j
        where j.content_digest <> e.content_digest or j.identity <> e.identity
        order by e."position"
        limit 1;

        if v_conflict is not null then
            perform counterfoil.raise_invalid_projection(
                'An entry of the deferred fact has the identity of another one with other content.', v_conflict,
                'The fact can never be materialised: skip it, and mend its producer.'
            );
        end if;
    end if;

    update counterfoil.outbox as o
    set
        payload = o.payload - 'deferredProjection',
        payload_digest = coalesce(o.payload_digest, counterfoil.canonical_digest(o.payload)),
        deferred = false
    from counterfoil.lanes as l
    where o.org_id = p_org_id and o.run_id = v_fact.run_id and o.seq = v_fact.seq
        and l.org_id = p_org_id and l.run_id = v_fact.run_id and l.lane = v_fact.lane
        and l.lease_owner = p_lease_owner and l.lease_expires_at > clock_timestamp()
        and o.seq between l.head_seq and l.lease_through_seq
    returning o.payload into v_payload;

    if v_payload is null then
        perform counterfoil.raise_lease_lost(
            'The lease on the fact was lost while it was indexed.', 'delivery_lease_not_current',
            'Claim the delivery again; nothing of this call was kept.'
        );
    end if;

    return v_payload;
end
$function$;

comment on function counterfoil.materialize_runtime_outbox_event(text, text, text) is
'Indexes a deferred fact into run_journal under the caller''s live lease and returns its projected payload; the payload alone if that was done before. Raises P0001 for input that can never be indexed; any other error leaves the fact retryable. Run it under a statement_timeout below the lease.';

revoke all on function counterfoil.materialize_runtime_outbox_event(text, text, text) from public;

create or replace function counterfoil.materialize_runtime_outbox_event(p_event_id text, p_lease_owner text)
returns jsonb
language plpgsql
volatile
parallel unsafe
called on null input
security definer
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_org_id text;
begin
    perform counterfoil.check_id(p_event_id, 'p_event_id');
    perform counterfoil.check_id(p_lease_owner, 'p_lease_owner');

    -- One index probe per org with pending facts; two orgs may use the same event id, the lease tells them apart.
    with recursive orgs as (
        (select l.org_id from counterfoil.lanes as l order by l.org_id limit 1)
        union all
        select (
            select l.org_id from counterfoil.lanes as l where l.org_id > o.org_id order by l.org_id limit 1
        )
        from orgs as o
        where o.org_id is not null
    )

    select f.org_id into v_org_id
    from orgs as g
    inner join counterfoil.outbox as f on f.org_id = g.org_id and f.event_id = p_event_id
    left join counterfoil.lanes as l
        on l.org_id = f.org_id and l.run_id = f.run_id and l.lane = f.lane
        and l.lease_owner = p_lease_owner and l.lease_expires_at > clock_timestamp()
    order by (l.lease_owner is null), f.org_id
    limit 1;

    if v_org_id is null then
        perform counterfoil.raise_not_found(
            'There is no pending fact of that event id.', 'fact_not_found', 'Check p_event_id.'
        );
    end if;

    return counterfoil.materialize_runtime_outbox_event(v_org_id, p_event_id, p_lease_owner);
end
$function$;

comment on function counterfoil.materialize_runtime_outbox_event(text, text) is
'The same for a fact known by its event id alone: finds the org among those with pending facts. The form with p_org_id first is the one for busy callers.';

revoke all on function counterfoil.materialize_runtime_outbox_event(text, text) from public;
