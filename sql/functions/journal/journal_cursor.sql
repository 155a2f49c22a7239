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

create or replace function counterfoil.journal_cursor(p_entry counterfoil.run_journal)
returns jsonb
language sql
stable
parallel safe
called on null input
security invoker
as $function$
    select counterfoil.journal_cursor((p_entry).occurred_at, (p_entry).run_id, (p_entry).channel, (p_entry).position)
    where (p_entry).org_id is not null
$function$;

comment on function counterfoil.journal_cursor(counterfoil.run_journal) is
'Key of an entry as a JSON document; null for no entry. Private.';

revoke all on function counterfoil.journal_cursor(counterfoil.run_journal) from public;
