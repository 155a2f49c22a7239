-- begin_retention: the orgs that one batch of retention is for.
--
-- Promises: up to p_limit orgs that have something of the kind past its time, each with the time before which it goes
--           (befores), and each one's share of a batch of p_limit, so that no org waits until another one's backlog is
--           gone. Looks at no more than 500 orgs, from where the last call ended; looked_to is where this one ended, empty
--           after the last org. Runs go by the longer of ledger_retention and outbox_retention: their facts go first.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.begin_retention(
    p_kind text,
    p_limit integer,
    p_now timestamptz,
    out org_ids text[],
    out befores timestamptz[],
    out share integer,
    out looked_to text
)
returns record
language plpgsql
stable
parallel safe
called on null input
security invoker
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_most integer := 500;
    v_after text;
    v_looked bigint;
    v_name text := case p_kind
        when 'logs' then 'log_retention'
        when 'facts' then 'outbox_retention'
        when 'journal' then 'journal_retention'
        when 'ledgers' then 'ledger_retention'
        when 'runs' then 'ledger_retention'
        else 'receipt_retention'
    end;
begin
    select t.after_org_id into v_after
    from counterfoil.retention_turns as t
    where t.kind = p_kind;

    select
        coalesce(array_agg(o.org_id order by o.ordinality) filter (where o.oldest < o.before), '{}'),
        coalesce(array_agg(o.before order by o.ordinality) filter (where o.oldest < o.before), '{}'),
        count(*),
        max(o.org_id)
    into org_ids, befores, v_looked, looked_to
    from (
        select
            w.org_id,
            w.oldest,
            w.ordinality,
            least(
                counterfoil.org_retention_before(w.org_id, v_name, p_now),
                case when p_kind = 'runs' then counterfoil.org_retention_before(w.org_id, 'outbox_retention', p_now) end
            ) as before
        from counterfoil.oldest_of_orgs(p_kind, coalesce(v_after, ''), v_most) with ordinality as w
    ) as o;

    if v_looked < v_most then
        looked_to := '';
    end if;
    if cardinality(org_ids) > p_limit then
        looked_to := org_ids[p_limit];
        org_ids := org_ids[: p_limit];
        befores := befores[: p_limit];
    end if;
    share := p_limit / greatest(1, cardinality(org_ids));
end
$function$;

comment on function counterfoil.begin_retention(text, integer, timestamptz) is
'Orgs with something of a kind past its retention, the time before which it goes, each one''s share of p_limit, and how far the look at orgs went (empty: to the end). Private.';

revoke all on function counterfoil.begin_retention(text, integer, timestamptz) from public;
