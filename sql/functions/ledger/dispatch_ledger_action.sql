-- dispatch_ledger_action: what POST …/run-ledger/created, …/started and …/events do.
--
-- Promises: checks the request against the token's scope (p_scope: orgId, runId, playName), then appends. 200 with {outcome,
--           firstPosition, lastPosition, complete, runLedgerIngressPrefixBatching}; 403 for another run or play than the
--           token's, 400 for a malformed request. p_body: {runId, playName, idempotencyKey, leaseOwner, events, chunk,
--           chunkCount, launch}; it must reach this function as the text that was sent, since numbers do not survive floats.
-- Locks:    as append_run_events.
-- Raises:   as append_run_created, append_run_started and append_run_events; the gateway maps these.
-- Since:    1

create or replace function counterfoil.dispatch_ledger_action(p_scope jsonb, p_action text, p_body jsonb)
returns table (status integer, headers jsonb, body jsonb)
language plpgsql
volatile
parallel unsafe
called on null input
security definer
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_org_id text := p_scope ->> 'orgId';
    v_run_id text := p_scope ->> 'runId';
    v_field text;
    v_kind text;
    v_answer record;
begin
    if coalesce(p_action, '') not in ('created', 'started', 'events') then
        return query select r.status, r.headers, r.body
        from counterfoil.http_refusal(
            404, 'unknown_action', 'There is no such ledger action.', 'Post to created, started or events.', 'action'
        ) as r;
        return;
    end if;
    if coalesce(v_org_id, '') = '' or coalesce(v_run_id, '') = '' or coalesce(p_scope ->> 'playName', '') = '' then
        return query select r.status, r.headers, r.body
        from counterfoil.http_refusal(
            403, 'scope_incomplete', 'The token does not name org, run and play.', 'Ask for a dispatch token of the run''s own.'
        ) as r;
        return;
    end if;
    if p_body is null or jsonb_typeof(p_body) <> 'object' then
        return query select r.status, r.headers, r.body
        from counterfoil.http_refusal(
            400, 'invalid_argument', 'The body must be a JSON object.', 'Compare the request with /openapi.json.', 'body'
        ) as r;
        return;
    end if;
    if
        p_body ->> 'runId' is distinct from v_run_id
        or (p_body ? 'playName' and p_body ->> 'playName' is distinct from p_scope ->> 'playName')
        or (p_body ? 'orgId' and p_body ->> 'orgId' is distinct from v_org_id)
    then
        return query select r.status, r.headers, r.body
        from counterfoil.http_refusal(
            403, 'scope_mismatch', 'The request is about another run than the token.', 'Ask for a dispatch token of that run.'
        ) as r;
        return;
    end if;
    select f.field, f.kind
    into v_field, v_kind
    from (values
        ('idempotencyKey', 'string', true), ('leaseOwner', 'string', true), ('events', 'array', true),
        ('chunk', 'number', false), ('chunkCount', 'number', false), ('launch', 'object', false)
    ) as f (field, kind, required)
    where
        coalesce(nullif(jsonb_typeof(p_body -> f.field), 'null'), case when f.required then 'missing' else f.kind end) <> f.kind
        or (f.kind = 'number' and p_body ->> f.field !~ '^[0-9]{1,9}$')
    limit 1;
    if found then
        return query select r.status, r.headers, r.body
        from counterfoil.http_refusal(
            400, 'invalid_argument', format('%s is missing or malformed.', v_field),
            format('Give %s as a JSON %s; compare the request with /openapi.json.', v_field, v_kind), v_field
        ) as r;
        return;
    end if;

    if p_action = 'started' and jsonb_typeof(p_body -> 'launch') = 'object' then
        perform counterfoil.check_started_launch(v_org_id, v_run_id, p_body -> 'launch');
    end if;
    select a.outcome, a.first_position, a.last_position, a.complete
    into strict v_answer
    from counterfoil.append_ledger_piece(
        v_org_id, v_run_id, p_body ->> 'idempotencyKey', p_body ->> 'leaseOwner', p_body -> 'events',
        coalesce((p_body ->> 'chunk')::integer, 1), coalesce((p_body ->> 'chunkCount')::integer, 1), p_action,
        case when p_action = 'started' then counterfoil.public_launch(nullif(p_body -> 'launch', 'null'::jsonb)) end
    ) as a;

    return query select r.status, r.headers, r.body
    from counterfoil.http_answer(200, jsonb_build_object(
        'outcome', v_answer.outcome,
        'firstPosition', v_answer.first_position,
        'lastPosition', v_answer.last_position,
        'complete', v_answer.complete,
        'runLedgerIngressPrefixBatching', true
    )) as r;
end
$function$;

comment on function counterfoil.dispatch_ledger_action(jsonb, text, jsonb) is
'The ledger endpoints'' work: p_action is created, started or events; p_scope {orgId, runId, playName} comes from the verified token. Answers (status, headers, body).';

revoke all on function counterfoil.dispatch_ledger_action(jsonb, text, jsonb) from public;
