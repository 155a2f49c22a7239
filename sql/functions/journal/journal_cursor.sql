-- journal_cursor: where a search goes on.
--
-- Promises: {at, runId, channel, position}: the key of the last entry looked at, or the start of a stretch of time.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.journal_cursor(
    p_at timestamptz,
    p_run_id text,
    p_channel text,
    p_position bigint
)
returns jsonb
language sql
stable
parallel safe
called on null input
security invoker
as $function$
    select jsonb_build_object(
        'at', counterfoil.iso_time(p_at), 'runId', p_run_id, 'channel', p_channel, 'position', p_position
    )
$function$;

comment on function counterfoil.journal_cursor(timestamptz, text, text, bigint) is
'Key of an entry as a JSON document, for the next page to begin behind it. Private.';

revoke all on function counterfoil.journal_cursor(timestamptz, text, text, bigint) from public;
