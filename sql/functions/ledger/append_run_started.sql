-- append_run_started: appends a run's run.started event, with the launch.
--
-- Promises: proves the delivery, then appends the one event and keeps the launch, without its credentials, for
--           readers. The same key again answers 'replayed' with the same positions and writes nothing.
-- Locks:    the run's ledgers row; then what assert_delivery locks.
-- Raises:   RL001, RL003, RL004 (the reasons of assert_delivery), RL005 as append_run_events does; RL001 when the
--           launch is another run's; RL008 when it is too large.
-- Since:    1

create or replace function counterfoil.append_run_started(
    p_org_id text,
    p_run_id text,
    p_idempotency_key text,
    p_lease_owner text,
    p_events jsonb,
    p_launch jsonb
)
returns table (outcome text, first_position bigint, last_position bigint, complete boolean)
language plpgsql
volatile
parallel unsafe
called on null input
security definer
set search_path = pg_catalog, pg_temp
as $function$
begin
    if p_launch is not null then
        perform counterfoil.check_started_launch(p_org_id, p_run_id, p_launch);
    end if;

    return query
    select a.outcome, a.first_position, a.last_position, a.complete
    from counterfoil.append_ledger_piece(
        p_org_id, p_run_id, p_idempotency_key, p_lease_owner, p_events, 1, 1, 'started',
        counterfoil.public_launch(p_launch)
    ) as a;
end
$function$;

comment on function counterfoil.append_run_started(text, text, text, text, jsonb, jsonb) is
'Proves the delivery of a run''s run.started fact and appends its event; keeps p_launch without its credentials. Answers appended or replayed, the positions, and that the delivery is complete.';

revoke all on function counterfoil.append_run_started(text, text, text, text, jsonb, jsonb) from public;
