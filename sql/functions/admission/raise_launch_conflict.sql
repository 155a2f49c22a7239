-- raise_launch_conflict: refuses a launch whose run exists with another identity.
--
-- Promises: never returns. Names the top-level fields that differ, never what is in them.
-- Locks:    nothing.
-- Raises:   RL003; DETAIL: the fields, separated by commas.
-- Since:    1

create or replace function counterfoil.raise_launch_conflict(p_run_id text, p_first jsonb, p_second jsonb)
returns void
language plpgsql
volatile
parallel unsafe
called on null input
security invoker
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_fields text;
begin
    select string_agg(coalesce(a.key, b.key), ', ' order by coalesce(a.key, b.key) collate "C")
    into v_fields
    from jsonb_each(counterfoil.launch_identity(p_first)) as a
    full join jsonb_each(counterfoil.launch_identity(p_second)) as b on b.key = a.key
    where a.value is distinct from b.value;

    perform counterfoil.raise_identity_conflict(
        format('Run %s exists with another launch; these fields differ: %s.', p_run_id, v_fields), v_fields,
        'Repeat the first launch unchanged, or choose another runId.'
    );
end
$function$;

comment on function counterfoil.raise_launch_conflict(text, jsonb, jsonb) is
'Raises RL003 naming the top-level fields in which two launches of one run differ. Private.';

revoke all on function counterfoil.raise_launch_conflict(text, jsonb, jsonb) from public;
