-- SPEC 4 and 2.8: what is wrong, where, and what is allowed; nothing is written.
begin;
\ir ../setup.psql
\ir setup.psql
select plan(86);

-- Required strings: absent, null, empty, of another type.
select pg_temp.raises(
    format('select counterfoil.admit_launch(pg_temp.launch() - %L)', f.field), 'RL001', 'p_launch.' || f.field,
    f.field || ' is required'
)
from unnest(array['orgId', 'runId', 'playId', 'playName', 'executorToken', 'baseUrl']) as f (field);
select pg_temp.raises(
    format('select counterfoil.admit_launch(pg_temp.launch(%L))', jsonb_build_object(f.field, b.value)),
    'RL001', 'p_launch.' || f.field, format('%s cannot be %s', f.field, b.value)
)
from unnest(array['orgId', 'runId', 'playId', 'playName', 'executorToken', 'baseUrl']) as f (field)
cross join (values ('null'::jsonb), ('""'), ('5'), ('["a"]')) as b (value);

-- Ids: 1 to 200 characters, no control characters.
select pg_temp.raises(
    format('select counterfoil.admit_launch(pg_temp.launch(%L))', jsonb_build_object(f.field, b.value)),
    'RL001', 'p_launch.' || f.field, format('%s: %s', f.field, b.what)
)
from unnest(array['orgId', 'runId', 'rootRunId', 'parentRunId', 'releaseLane', 'concurrencyKey']) as f (field)
cross join (values (repeat('x', 201), '201 characters'), (e'a\nb', 'a line feed'), (e'a\x7f', 'a delete character')) as b (value, what);
select is(
    (select a.outcome from counterfoil.admit_launch(
        pg_temp.launch(jsonb_build_object('runId', repeat('ü', 200), 'orgId', 'o', 'concurrencyKey', repeat('k', 200)))) as a),
    'admitted', 'ids of 200 characters are ids'
);

-- The rest, one bad value each.
select pg_temp.raises(
    format('select counterfoil.admit_launch(pg_temp.launch(%L))', b.more), 'RL001', 'p_launch.' || b.field, b.more::text
)
from (
    values
        ('baseUrl', '{"baseUrl": "runtime.example"}'::jsonb),
        ('baseUrl', '{"baseUrl": "ftp://runtime.example"}'),
        ('runtimeApiBaseUrl', '{"runtimeApiBaseUrl": "//x"}'),
        ('runtimeApiBaseUrl', '{"runtimeApiBaseUrl": 1}'),
        ('priority', '{"priority": 10}'),
        ('priority', '{"priority": -1}'),
        ('priority', '{"priority": 1.5}'),
        ('priority', '{"priority": "1"}'),
        ('maxAttempts', '{"maxAttempts": 0}'),
        ('maxAttempts', '{"maxAttempts": 1001}'),
        ('attemptTimeoutSeconds', '{"attemptTimeoutSeconds": 0}'),
        ('availableAt', '{"availableAt": "tomorrow"}'),
        ('availableAt', '{"availableAt": "2036-01-01T00:00:00"}'),
        ('availableAt', '{"availableAt": 1767225600}'),
        ('deadlineAt', '{"deadlineAt": "2035-02-29T00:00:00Z"}'),
        ('deadlineAt', '{"deadlineAt": "infinity"}'),
        ('deadlineAt', '{"availableAt": "2036-01-01T00:00:00Z", "deadlineAt": "2036-01-01T00:00:00Z"}'),
        ('runtimeLogIdentity', '{"runtimeLogIdentity": "position"}'),
        ('runtimeAuthority', '{"runtimeAuthority": 7}'),
        ('inputFileId', '{"inputFileId": {}}'),
        ('vercelProtectionBypassToken', '{"vercelProtectionBypassToken": "a\nb"}'),
        ('parentRunId', '{"parentRunId": "run"}'),
        ('retryPolicy', '{"retryPolicy": 3}'),
        ('retryPolicy.backoffBaseMs', '{"retryPolicy": {"backoffBaseMs": 0}}'),
        ('retryPolicy.backoffMaxMs', '{"retryPolicy": {"backoffMaxMs": "1"}}'),
        ('retryPolicy.backofBaseMs', '{"retryPolicy": {"backoffMaxMs": 1, "backofBaseMs": 1}}'),
        ('retryPolicy.jitter', '{"retryPolicy": {"jitter": 1.1}}'),
        ('retryPolicy.nonRetryableErrors', '{"retryPolicy": {"nonRetryableErrors": "x"}}'),
        ('retryPolicy.nonRetryableErrors', '{"retryPolicy": {"nonRetryableErrors": [1]}}')
) as b (field, more);

select pg_temp.raises('select counterfoil.admit_launch(null)', 'RL001', 'p_launch');
select pg_temp.raises($$select counterfoil.admit_launch('[]')$$, 'RL001', 'p_launch');
select pg_temp.raises($$select counterfoil.admit_launches('{}')$$, 'RL001', 'p_launches');
select pg_temp.raises('select counterfoil.admit_launches(null)', 'RL001', 'p_launches');
select pg_temp.raises(
    $$ select counterfoil.admit_launch(pg_temp.launch('{"parentRunId": "nobody"}')) $$, 'RL002', 'parent_run_not_found'
);

update counterfoil.settings as s set value = '1024' where s.name = 'launch_max_bytes';
select pg_temp.raises(
    $$ select counterfoil.admit_launch(pg_temp.launch(jsonb_build_object('input', repeat('x', 1024)))) $$, 'RL008', 'p_launch'
);
select is(
    pg_temp.admit('fits', jsonb_build_object(
        'input', repeat('x', 1024 - octet_length(pg_temp.launch('{"runId": "fits", "input": ""}')::text))
    )),
    'admitted', 'a launch of exactly the limit fits'
);
select is((select count(*) from counterfoil.runs), 2::bigint, 'what was refused left nothing');

select * from finish();
rollback;
