-- failure_error: the error of a failure, checked.
--
-- Promises: the error object as it was sent, but for secrets in it: what a play raises often quotes what it was called with.
-- Locks:    nothing.
-- Raises:   RL001 with the JSON path.
-- Since:    1

create or replace function counterfoil.failure_error(p_failure jsonb, p_where text)
returns jsonb
language plpgsql
volatile
parallel unsafe
strict
security invoker
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_error jsonb := p_failure -> 'error';
    v_bad record;
begin
    if coalesce(jsonb_typeof(v_error), 'null') <> 'object' then
        perform counterfoil.raise_invalid_argument(
            format('%s.error must be an object.', p_where), format('%s.error', p_where),
            'Give {"message": …} with an optional type, code, retryable and details.'
        );
    end if;
    select f.field, f.allowed into v_bad
    from (
        values
            (1, 'error.message', v_error -> 'message', 'a string', array['string']),
            (2, 'error.type', v_error -> 'type', 'a string', array['string', 'null']),
            (3, 'error.code', v_error -> 'code', 'a string', array['string', 'null']),
            (4, 'error.retryable', v_error -> 'retryable', 'true or false', array['boolean', 'null']),
            (5, 'preserveRunnerTerminal', p_failure -> 'preserveRunnerTerminal', 'true or false', array['boolean', 'null'])
    ) as f (ordinal, field, value, allowed, types)
    where coalesce(jsonb_typeof(f.value), 'null') <> all (f.types)
    order by f.ordinal
    limit 1;
    if found then
        perform counterfoil.raise_invalid_argument(
            format('%s.%s must be %s.', p_where, v_bad.field, v_bad.allowed), format('%s.%s', p_where, v_bad.field),
            format('Give %s.', v_bad.allowed)
        );
    end if;
    -- Deeper than any document may nest, so that nothing is cut.
    return counterfoil.sanitize_payload(v_error, 250);
end
$function$;

comment on function counterfoil.failure_error(jsonb, text) is
'Error object of a failure, checked (RL001 with the JSON path), its secrets replaced by [redacted]. Private.';

revoke all on function counterfoil.failure_error(jsonb, text) from public;
