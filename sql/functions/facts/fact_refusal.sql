-- fact_refusal: why a fact cannot be appended to a run as it stands.
--
-- Promises: null when it can; else written_by_the_run (starts and terminals), run_not_started, or run_ended (of which
--           carriers are exempt). The caller holds the run's row.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.fact_refusal(p_event_type text, p_started boolean, p_ended boolean)
returns text
language sql
immutable
parallel safe
called on null input
security invoker
as $function$
    select case
        when counterfoil.event_kind(p_event_type) in ('start', 'terminal') then 'written_by_the_run'
        when not p_started then 'run_not_started'
        when p_ended and counterfoil.event_kind(p_event_type) <> 'carrier' then 'run_ended'
    end
$function$;

comment on function counterfoil.fact_refusal(text, boolean, boolean) is
'Why a fact of this type cannot be appended to a run that has started or ended; null when it can. Private.';

revoke all on function counterfoil.fact_refusal(text, boolean, boolean) from public;
