-- next_attempt_due_at: when a claim is next worth while.
--
-- Promises: since when or from when a run of the plays (null or empty: any) in the release lane can be claimed; null when
--           none waits but for a slot, an event, room under a limit, or nothing. Reads a few index entries for each play.
-- Locks:    nothing.
-- Raises:   RL001.
-- Since:    1

create or replace function counterfoil.next_attempt_due_at(p_plays text[], p_release_lane text)
returns timestamptz
language plpgsql
stable
parallel safe
called on null input
security definer
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_lane text := coalesce(p_release_lane, 'default');
begin
    perform counterfoil.check_id(v_lane, 'p_release_lane');
    return counterfoil.due_at(p_plays, v_lane);
end
$function$;

comment on function counterfoil.next_attempt_due_at(text[], text) is
'When a run of the plays (null or empty: any) in a release lane is next claimable; in the past when one is now, null when none is known.';

revoke all on function counterfoil.next_attempt_due_at(text[], text) from public;
