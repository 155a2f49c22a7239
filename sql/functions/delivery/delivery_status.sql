-- delivery_status: what has become of a fact.
--
-- Promises: delivered; blocked, when it or a fact before it in its lane waits for an operator, or an operator skipped it;
--           pending otherwise; unknown when the run has no such fact.
-- Locks:    nothing.
-- Raises:   RL001 malformed ids.
-- Since:    1

create or replace function counterfoil.delivery_status(p_org_id text, p_run_id text, p_event_id text)
returns text
language plpgsql
stable
parallel safe
called on null input
security definer
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_fact record;
begin
    perform counterfoil.check_id(p_org_id, 'p_org_id');
    perform counterfoil.check_id(p_run_id, 'p_run_id');
    perform counterfoil.check_id(p_event_id, 'p_event_id');

    select o.seq, o.lane, l.head_seq, l.failures, l.blocked_at
    into v_fact
    from counterfoil.outbox as o
    left join counterfoil.lanes as l
        on l.org_id = p_org_id and l.run_id = p_run_id and l.lane = o.lane and l.head_seq <= o.seq
    where o.org_id = p_org_id and o.event_id = p_event_id and o.run_id = p_run_id;

    if v_fact.seq is null then
        return 'unknown';
    elsif v_fact.head_seq is null then
        return case
            when exists (
                select
                from counterfoil.deliveries as d
                where
                    d.org_id = p_org_id and d.run_id = p_run_id and d.lane = v_fact.lane
                    and d.first_seq = v_fact.seq and d.outcome = 'skipped'
            ) then 'blocked'
            else 'delivered'
        end;
    elsif v_fact.blocked_at is not null then
        return 'blocked';
    elsif v_fact.failures > 0 and exists (
        select
        from counterfoil.fact_failures as x
        where
            x.org_id = p_org_id and x.run_id = p_run_id and x.lane = v_fact.lane and x.seq <= v_fact.seq
            and (x.state = 'blocked' or (x.state = 'skipped' and x.seq = v_fact.seq))
    ) then
        return 'blocked';
    end if;
    return 'pending';
end
$function$;

comment on function counterfoil.delivery_status(text, text, text) is
'What has become of a fact: delivered, blocked (it, or a fact before it, waits for an operator, or it was skipped), pending, or unknown.';

revoke all on function counterfoil.delivery_status(text, text, text) from public;
