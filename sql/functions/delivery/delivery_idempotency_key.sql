-- delivery_idempotency_key: the key under which a set of facts is delivered.
--
-- Promises: terminal:<run>:<delivery key of the terminal> when there is one among the facts, else events:<run>:<sha256 hex
--           of their delivery keys, in causal order, joined by newline>. The same for the same facts for ever, in
--           whatever order they are named.
-- Locks:    nothing.
-- Raises:   RL001 malformed arguments, or facts of two lanes; RL002 fact_not_found.
-- Since:    1

create or replace function counterfoil.delivery_idempotency_key(p_org_id text, p_run_id text, p_event_ids text[])
returns text
language plpgsql
stable
parallel safe
called on null input
security definer
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_facts record;
begin
    perform counterfoil.check_id(p_org_id, 'p_org_id');
    perform counterfoil.check_id(p_run_id, 'p_run_id');
    perform counterfoil.check_event_ids(p_event_ids);

    select
        count(*) as facts,
        count(distinct o.lane) as lanes,
        max(o.delivery_key::text) filter (where counterfoil.event_kind(o.event_type) = 'terminal') as terminal_key,
        string_agg(o.delivery_key::text, e'\n' order by o.seq) as all_keys
    into v_facts
    from unnest(p_event_ids) as g (event_id)
    inner join counterfoil.outbox as o on o.org_id = p_org_id and o.event_id = g.event_id
    where o.run_id = p_run_id;

    if v_facts.facts <> cardinality(p_event_ids) then
        perform counterfoil.raise_not_found(
            'The run has no such fact.', 'fact_not_found', 'Check p_run_id and p_event_ids; facts past retention are gone.'
        );
    elsif v_facts.lanes > 1 then
        perform counterfoil.raise_invalid_argument(
            'These facts wait in two lanes.', 'p_event_ids', 'A delivery takes facts of one lane.'
        );
    end if;

    return counterfoil.receipt_key(p_run_id, v_facts.terminal_key, v_facts.all_keys);
end
$function$;

comment on function counterfoil.delivery_idempotency_key(text, text, text[]) is
'Idempotency key of a delivery of exactly these facts of a run.';

revoke all on function counterfoil.delivery_idempotency_key(text, text, text[]) from public;
