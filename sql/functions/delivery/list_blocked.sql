-- list_blocked: the dead letter queue.
--
-- Promises: facts that wait for an operator, oldest first within each org: which fact, since when, why, whether it blocks
--           its lane now, and how many facts of the lane come after it
--           (counted up to 1000). p_org_id null lists all orgs. p_after is the cursor of
--           the last row seen. last_error holds no payload and no secret.
-- Locks:    nothing.
-- Raises:   RL001 malformed arguments.
-- Since:    1

create or replace function counterfoil.list_blocked(
    p_org_id text default null,
    p_after jsonb default null,
    p_limit integer default 100
)
returns table (
    org_id text,
    run_id text,
    lane text,
    seq bigint,
    event_id text,
    event_type text,
    attempts integer,
    blocked_at timestamptz,
    last_error jsonb,
    blocks_lane boolean,
    waiting_facts bigint,
    "cursor" jsonb
)
language plpgsql
stable
parallel safe
called on null input
security definer
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_after_org text := coalesce(p_after ->> 'orgId', p_org_id, '');
    v_after_at timestamptz := coalesce(counterfoil.event_time(p_after -> 'blockedAt'), '-infinity');
    v_after_run text := coalesce(p_after ->> 'runId', '');
    v_after_seq bigint;
    -- The last of all orgs sorts below this character.
    v_last_org text := coalesce(p_org_id, chr(1114111));
begin
    perform counterfoil.check_limit(p_limit, 1, 10000, 'p_limit');
    if p_org_id is not null then
        perform counterfoil.check_id(p_org_id, 'p_org_id');
    end if;
    if p_after is not null and (
        jsonb_typeof(p_after) <> 'object' or jsonb_typeof(p_after -> 'orgId') is distinct from 'string'
        or jsonb_typeof(p_after -> 'runId') is distinct from 'string'
        or coalesce(p_after ->> 'seq', '') !~ '^[0-9]{1,18}$'
        or counterfoil.event_time(p_after -> 'blockedAt') is null
        or (p_org_id is not null and p_after ->> 'orgId' <> p_org_id)
    ) then
        perform counterfoil.raise_invalid_argument(
            'p_after is no cursor of this list.', 'p_after', 'Give the cursor of the last row, or null.'
        );
    end if;
    v_after_seq := coalesce((p_after ->> 'seq')::bigint, 0);

    return query
    select
        x.org_id, x.run_id, x.lane, x.seq, x.event_id, o.event_type, x.attempts, x.blocked_at, x.last_error,
        l.blocked_at is not null and x.seq <= coalesce(l.receipt_through_seq, l.head_seq),
        (
            select count(*)
            from (
                select
                from counterfoil.outbox as o
                where o.org_id = x.org_id and o.run_id = x.run_id and o.lane = x.lane and o.seq > x.seq
                limit 1000
            ) as w
        ),
        jsonb_build_object(
            'orgId', x.org_id, 'blockedAt', counterfoil.iso_time(x.blocked_at), 'runId', x.run_id, 'seq', x.seq
        )
    from counterfoil.fact_failures as x
    inner join counterfoil.outbox as o on o.org_id = x.org_id and o.run_id = x.run_id and o.seq = x.seq
    inner join counterfoil.lanes as l on l.org_id = x.org_id and l.run_id = x.run_id and l.lane = x.lane
    where
        x.state = 'blocked'
        and (x.org_id, x.blocked_at, x.run_id, x.seq) > (v_after_org, v_after_at, v_after_run, v_after_seq)
        and x.org_id <= v_last_org
    order by x.org_id, x.blocked_at, x.run_id, x.seq
    limit p_limit;
end
$function$;

comment on function counterfoil.list_blocked(text, jsonb, integer) is
'Facts whose delivery is blocked, of one org or all, with the error, since when, and how many facts come after each (up to 1000). Page with p_after, the cursor of the last row.';

revoke all on function counterfoil.list_blocked(text, jsonb, integer) from public;
