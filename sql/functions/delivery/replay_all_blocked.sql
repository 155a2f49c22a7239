-- replay_all_blocked: lets all that an outage blocked be delivered again.
--
-- Promises: what replay_blocked() does, for up to p_limit facts of one org or all (null) whose last error has p_code, or any
--           (null), that were blocked before p_blocked_before (null: now). One row for each fact replayed, with that time:
--           given to the next call, until one answers nothing, it lets what is blocked again meanwhile be, so that the calls
--           come to an end.
-- Locks:    the lanes, in order of org, run and lane, for no key update.
-- Raises:   RL001 malformed arguments or no reason.
-- Since:    1

create or replace function counterfoil.replay_all_blocked(
    p_reason text,
    p_org_id text default null,
    p_code text default null,
    p_blocked_before timestamptz default null,
    p_limit integer default 1000
)
returns table (org_id text, run_id text, event_id text, blocked_before timestamptz)
language plpgsql
volatile
parallel unsafe
called on null input
security definer
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_before timestamptz := coalesce(p_blocked_before, clock_timestamp());
    -- The last of all orgs sorts below this character.
    v_last_org text := coalesce(p_org_id, chr(1114111));
    v_fact record;
begin
    perform counterfoil.check_reason(p_reason);
    perform counterfoil.check_limit(p_limit, 1, 10000, 'p_limit');
    if p_org_id is not null then
        perform counterfoil.check_id(p_org_id, 'p_org_id');
    end if;

    for v_fact in
        select b.org_id, b.run_id, b.lane, b.seq, b.event_id
        from (
            select x.org_id, x.run_id, x.lane, x.seq, x.event_id
            from counterfoil.fact_failures as x
            where
                x.state = 'blocked'
                and x.org_id between coalesce(p_org_id, '') and v_last_org
                and x.blocked_at < v_before
                and x.last_error ->> 'code' is not distinct from coalesce(p_code, x.last_error ->> 'code')
            order by x.org_id, x.blocked_at, x.run_id, x.seq
            limit p_limit
        ) as b
        order by b.org_id, b.run_id, b.lane, b.seq
    loop
        perform
        from counterfoil.lanes as l
        where l.org_id = v_fact.org_id and l.run_id = v_fact.run_id and l.lane = v_fact.lane
        for no key update;
        -- What was frozen with another fact was replayed with it; and somebody else may have been here before.
        if
            exists (
                select
                from counterfoil.fact_failures as x
                where
                    x.org_id = v_fact.org_id and x.run_id = v_fact.run_id and x.seq = v_fact.seq
                    and x.state = 'blocked' and x.blocked_at < v_before
            )
        then
            return query
            select v_fact.org_id, v_fact.run_id, r.event_id, v_before
            from counterfoil.replay_fact(v_fact.org_id, v_fact.run_id, v_fact.event_id, p_reason) as r;
        end if;
    end loop;
end
$function$;

comment on function counterfoil.replay_all_blocked(text, text, text, timestamptz, integer) is
'Puts up to p_limit blocked facts, of one org or all, with the error code p_code or any, back in delivery as replay_blocked does; those frozen with them go along. Give blocked_before to the next call as p_blocked_before, until one answers nothing.';

revoke all on function counterfoil.replay_all_blocked(text, text, text, timestamptz, integer) from public;
