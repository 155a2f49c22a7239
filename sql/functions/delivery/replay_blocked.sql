-- replay_blocked: lets a blocked fact be delivered again.
--
-- Promises: the fact starts its retry policy anew, and its lane is due now if nothing else blocks it. The blocked facts of
--           one frozen receipt can only go together, so they are replayed together. Order and receipt stay. One row for
--           each fact replayed; the audit trail says who, what and why.
-- Locks:    the lane, for no key update.
-- Raises:   RL001 malformed arguments or no reason; RL002 fact_not_found; RL005 fact_not_blocked.
-- Since:    1

create or replace function counterfoil.replay_blocked(p_org_id text, p_run_id text, p_event_id text, p_reason text)
returns table (event_id text)
language plpgsql
volatile
parallel unsafe
called on null input
security definer
set search_path = pg_catalog, pg_temp
as $function$
begin
    return query select r.event_id from counterfoil.replay_fact(p_org_id, p_run_id, p_event_id, p_reason) as r;
end
$function$;

comment on function counterfoil.replay_blocked(text, text, text, text) is
'Puts a blocked fact, with those frozen with it, back in delivery from the start of the retry policy. p_reason is kept in the audit trail. Answers the facts replayed.';

revoke all on function counterfoil.replay_blocked(text, text, text, text) from public;
