-- launch_fault: what is wrong with a launch document.
--
-- Promises: null for a good document, else {field, message, hint} of the first fault; field is empty when the document
--           itself is no object. Optional fields may be JSON null. Unknown fields are nobody's business, but for
--           those of retryPolicy.
-- Locks:    nothing.
-- Raises:   nothing: its caller knows which launch of how many it is.
-- Since:    1

create or replace function counterfoil.launch_fault(p_launch jsonb)
returns text[]
language plpgsql
stable
parallel safe
called on null input
security invoker
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_field text;
    v_fault text[];
    v_policy jsonb := p_launch -> 'retryPolicy';
begin
    if p_launch is null or jsonb_typeof(p_launch) <> 'object' then
        return array['', 'must be a JSON object', 'Give the launch as a JSON object.'];
    end if;

    -- At one glance what most launches are, the required strings and no others, as they should be; a look at each field is
    -- for those of which that is not so.
    if
        coalesce(
            p_launch ?| array[
                'rootRunId', 'parentRunId', 'releaseLane', 'concurrencyKey', 'runtimeApiBaseUrl', 'runtimeTokenOrigin',
                'vercelProtectionBypassToken', 'inputFileId', 'preloadedDbSessionUnwrapKey', 'launchIdentityDigest'
            ]
            or jsonb_typeof(p_launch -> 'orgId') <> 'string' or length(p_launch ->> 'orgId') not between 1 and 200
            or jsonb_typeof(p_launch -> 'runId') <> 'string' or length(p_launch ->> 'runId') not between 1 and 200
            or jsonb_typeof(p_launch -> 'playId') <> 'string' or length(p_launch ->> 'playId') not between 1 and 200
            or jsonb_typeof(p_launch -> 'playName') <> 'string' or length(p_launch ->> 'playName') not between 1 and 200
            or jsonb_typeof(p_launch -> 'executorToken') <> 'string' or p_launch ->> 'executorToken' = ''
            or jsonb_typeof(p_launch -> 'baseUrl') <> 'string' or p_launch ->> 'baseUrl' !~* '^https?://[^/\s?#]+([/?#]\S*)?$'
            or concat(
                p_launch ->> 'orgId', p_launch ->> 'runId', p_launch ->> 'playId', p_launch ->> 'playName',
                p_launch ->> 'executorToken', p_launch ->> 'baseUrl'
            ) ~ '[[:cntrl:]]',
            true
        )
    then
        -- Ids: required ones first, so that a document of another kind is told so.
        select f.field into v_field
        from unnest(array['orgId', 'runId', 'playId', 'playName', 'executorToken', 'baseUrl'])
            with ordinality as f (field, ordinal)
        where coalesce(jsonb_typeof(p_launch -> f.field), 'null') <> 'string' or p_launch ->> f.field = ''
        order by f.ordinal
        limit 1;
        if found then
            return array[v_field, 'is required and must be a string that is not empty', 'Give it as a JSON string.'];
        end if;

        select f.field into v_field
        from unnest(
            array['orgId', 'runId', 'playId', 'playName', 'rootRunId', 'parentRunId', 'releaseLane', 'concurrencyKey']
        ) with ordinality as f (field, ordinal)
        where coalesce(jsonb_typeof(p_launch -> f.field), 'null') <> 'null'
            and (
                jsonb_typeof(p_launch -> f.field) <> 'string'
                or length(p_launch ->> f.field) not between 1 and 200
                or p_launch ->> f.field ~ '[[:cntrl:]]'
            )
        order by f.ordinal
        limit 1;
        if found then
            return array[
                v_field, 'must be a string of 1 to 200 characters without control characters',
                'Give an id of 1 to 200 characters.'
            ];
        end if;

        select f.field into v_field
        from unnest(array[
            'executorToken', 'baseUrl', 'runtimeApiBaseUrl', 'runtimeTokenOrigin', 'vercelProtectionBypassToken',
            'inputFileId', 'preloadedDbSessionUnwrapKey', 'launchIdentityDigest'
        ]) with ordinality as f (field, ordinal)
        where coalesce(jsonb_typeof(p_launch -> f.field), 'null') <> 'null'
            and (jsonb_typeof(p_launch -> f.field) <> 'string' or p_launch ->> f.field ~ '[[:cntrl:]]')
        order by f.ordinal
        limit 1;
        if found then
            return array[v_field, 'must be a string without control characters', 'Give it as a JSON string.'];
        end if;

        select f.field into v_field
        from unnest(array['baseUrl', 'runtimeApiBaseUrl']) with ordinality as f (field, ordinal)
        where p_launch ->> f.field !~* '^https?://[^/\s?#]+([/?#]\S*)?$'
        order by f.ordinal
        limit 1;
        if found then
            return array[v_field, 'must be an http or https URL', 'Give a URL such as https://runtime.example.'];
        end if;
    end if;

    if p_launch ?| array['priority', 'maxAttempts', 'attemptTimeoutSeconds'] then
        select array[f.field, format('must be a whole number from %s to %s', f.minimum, f.maximum), 'Give it as a JSON number.']
        into v_fault
        from (
            values
                (1, 'priority', 0, 9), (2, 'maxAttempts', 1, 1000), (3, 'attemptTimeoutSeconds', 1, 31536000)
        ) as f (ordinal, field, minimum, maximum)
        where coalesce(jsonb_typeof(p_launch -> f.field), 'null') <> 'null'
            and case
                when jsonb_typeof(p_launch -> f.field) <> 'number' then true
                else (p_launch ->> f.field)::numeric not between f.minimum and f.maximum
                    or (p_launch ->> f.field)::numeric <> trunc((p_launch ->> f.field)::numeric)
            end
        order by f.ordinal
        limit 1;
        if found then
            return v_fault;
        end if;
    end if;

    if not p_launch ?| array['availableAt', 'deadlineAt', 'parentRunId', 'runtimeAuthority', 'runtimeLogIdentity', 'retryPolicy'] then
        return null;
    end if;

    select f.field into v_field
    from unnest(array['availableAt', 'deadlineAt']) with ordinality as f (field, ordinal)
    where coalesce(jsonb_typeof(p_launch -> f.field), 'null') <> 'null'
        and counterfoil.read_time(p_launch -> f.field) is null
    order by f.ordinal
    limit 1;
    if found then
        return array[
            v_field, 'must be a time with a zone, such as "2026-01-02T03:04:05Z"', 'Give an RFC 3339 time as a JSON string.'
        ];
    end if;

    v_fault := case
        when counterfoil.read_time(p_launch -> 'deadlineAt') <= counterfoil.read_time(p_launch -> 'availableAt')
            then array['deadlineAt', 'must come after availableAt', 'Give a later deadline.']
        when p_launch ->> 'parentRunId' = p_launch ->> 'runId'
            then array['parentRunId', 'must name another run', 'A run cannot be its own parent.']
        when coalesce(jsonb_typeof(p_launch -> 'runtimeAuthority'), 'null') not in ('null', 'string', 'object')
            then array['runtimeAuthority', 'must be a string or an object', 'Give it as the runtime issued it.']
        when p_launch -> 'runtimeLogIdentity' not in ('null'::jsonb, '"origin"'::jsonb)
            then array['runtimeLogIdentity', 'must be "origin" or absent', 'Leave it out for positional identity.']
        when coalesce(jsonb_typeof(v_policy), 'null') not in ('null', 'object')
            then array['retryPolicy', 'must be an object', 'Give backoffBaseMs, backoffMaxMs, jitter or nonRetryableErrors.']
    end;
    if v_fault is not null or coalesce(jsonb_typeof(v_policy), 'null') = 'null' then
        return v_fault;
    end if;

    -- Its fields are Counterfoil's own: one that is misspelt would be a policy that nobody follows.
    select left(k.field, 100) into v_field
    from jsonb_object_keys(v_policy) as k (field)
    where k.field not in ('backoffBaseMs', 'backoffMaxMs', 'jitter', 'nonRetryableErrors')
    order by k.field
    limit 1;
    if found then
        return array[
            'retryPolicy.' || v_field, 'is unknown', 'Give backoffBaseMs, backoffMaxMs, jitter or nonRetryableErrors.'
        ];
    end if;

    select array['retryPolicy.' || f.field, format('must be a number from %s to %s', f.minimum, f.maximum), 'Give it as a JSON number.']
    into v_fault
    from (
        values (1, 'backoffBaseMs', 1, 3600000), (2, 'backoffMaxMs', 1, 86400000), (3, 'jitter', 0, 1)
    ) as f (ordinal, field, minimum, maximum)
    where coalesce(jsonb_typeof(v_policy -> f.field), 'null') <> 'null'
        and case
            when jsonb_typeof(v_policy -> f.field) <> 'number' then true
            else (v_policy ->> f.field)::numeric not between f.minimum and f.maximum
        end
    order by f.ordinal
    limit 1;
    if found then
        return v_fault;
    end if;

    if coalesce(jsonb_typeof(v_policy -> 'nonRetryableErrors'), 'null') <> 'null' then
        if jsonb_typeof(v_policy -> 'nonRetryableErrors') <> 'array' or exists (
            select
            from jsonb_array_elements(v_policy -> 'nonRetryableErrors') as e (item)
            where jsonb_typeof(e.item) <> 'string'
        ) then
            return array[
                'retryPolicy.nonRetryableErrors', 'must be an array of strings', 'Give the types or codes of the errors.'
            ];
        end if;
    end if;

    return null;
end
$function$;

comment on function counterfoil.launch_fault(jsonb) is
'First fault of a launch document as {field, message, hint}; null when it has none. Private.';

revoke all on function counterfoil.launch_fault(jsonb) from public;
