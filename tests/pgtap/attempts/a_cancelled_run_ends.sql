-- SPEC 5: cancellation in every state; the grace time; descendants when asked.
begin;
\ir ../setup.psql
\ir setup.psql
select plan(37);

create function pg_temp.cancel(p_run text, p_reason text default 'enough')
returns text language sql volatile parallel unsafe as $function$
  select c.outcome || ', ' || c.status from counterfoil.cancel_run('org', p_run, p_reason) as c
$function$;

-- Queued.
select is(pg_temp.admit('q'), 'admitted', 'a queued run');
select is(pg_temp.cancel('q'), 'cancelled, cancelled', 'ends now');
select is(pg_temp.facts('q'), array['run.created', 'run.cancelled'], 'without having started');
select is(pg_temp.last_fact('q'), '{"reason": "enough"}'::jsonb, 'with the reason');
select is(pg_temp.cancel('q', 'again'), 'already_ended, cancelled', 'once');
select is(cardinality(pg_temp.claim()), 0, 'nobody claims it');

-- Running: the holder is told, the first request counts, and after the grace time it ends without the holder.
select is(pg_temp.admit('r'), 'admitted', 'another run');
select is(pg_temp.claim(), array['r'], 'runs');
select is(pg_temp.cancel('r'), 'requested, running', 'its holder is asked');
select is(pg_temp.cancel('r', 'again'), 'requested, running', 'asking again changes nothing');
select is(
    (
        select array[r.cancel_reason, round(extract(epoch from r.cancel_deadline_at - r.cancel_requested_at))::text]
        from counterfoil.runs as r
        where r.run_id = 'r'
    ),
    array['enough', '30'], 'the first reason and the grace time stand'
);
select is_empty($$ select * from counterfoil.recover_attempts(9, 'default') $$, 'within the grace time it goes on');
update counterfoil.runs as r set cancel_deadline_at = clock_timestamp() - interval '1 second' where r.run_id = 'r';
select is_empty($$ select * from counterfoil.recover_attempts(9, 'blue') $$, 'another lane does not see to it');
select results_eq(
    $$ select * from counterfoil.recover_attempts(9, 'default') $$, $$ values ('org', 'r', 1, 'cancelled') $$, 'after it, it ends'
);
select is(pg_temp.last_fact('r'), '{"reason": "enough", "producerAttempt": 1}'::jsonb, 'as cancelled');
select is((select a.status from counterfoil.attempts as a where a.run_id = 'r'), 'cancelled', 'so does its attempt');
select pg_temp.raises($$ select pg_temp.complete('r') $$, 'RL004', 'attempt_lease_not_current', 'its holder is too late');

-- A completion that comes first wins.
select is(pg_temp.admit('w'), 'admitted', 'a run');
select is(pg_temp.claim(), array['w'], 'runs');
select is(pg_temp.cancel('w'), 'requested, running', 'is to be cancelled');
select is(pg_temp.complete('w') ->> 'outcome', 'completed', 'but had completed');
select is(pg_temp.cancel('w'), 'already_ended, completed', 'and stays so');

-- A lost holder cannot acknowledge: the run ends when its lease does.
select is(pg_temp.admit('l'), 'admitted', 'a run');
select is(pg_temp.claim(), array['l'], 'runs');
select is(pg_temp.cancel('l'), 'requested, running', 'is to be cancelled');
select pg_temp.lapse('l');
select is((select r.outcome from counterfoil.recover_attempts(9, 'default') as r), 'cancelled', 'and ends with its lease');

-- Waiting between attempts.
select is(pg_temp.admit('b'), 'admitted', 'a run');
select is(pg_temp.claim(), array['b'], 'runs');
select is(pg_temp.fail_run('b') ->> 'outcome', 'retry_scheduled', 'and is to be tried again');
select is(pg_temp.cancel('b'), 'cancelled, cancelled', 'it ends now');

-- Descendants.
select is(
    (
        select array_agg(a.outcome)
        from counterfoil.admit_launches(jsonb_build_array(
            pg_temp.launch('{"runId": "top"}'), pg_temp.launch('{"runId": "kid-1", "parentRunId": "top", "concurrencyKey": "k"}'),
            pg_temp.launch('{"runId": "kid-2", "parentRunId": "top", "concurrencyKey": "k"}'),
            pg_temp.launch('{"runId": "grandkid", "parentRunId": "kid-1"}'), pg_temp.launch('{"runId": "stranger"}')
        )) as a
    ),
    array['admitted', 'admitted', 'admitted', 'admitted', 'admitted'], 'a family and a stranger'
);
select is(pg_temp.claim(1), array['top'], 'the top one runs');
select results_eq(
    $$ select * from counterfoil.cancel_run('org', 'top', 'all of it', true) $$,
    $$ values ('top', 'requested', 'running'), ('grandkid', 'cancelled', 'cancelled'), ('kid-1', 'cancelled', 'cancelled'),
        ('kid-2', 'cancelled', 'cancelled') $$,
    'all below it are cancelled with it'
);
select is((select count(*) from counterfoil.concurrency_keys), 0::bigint, 'their key is free');
select results_eq(
    $$ select * from counterfoil.cancel_run('org', 'stranger', null, false) $$, $$ values ('stranger', 'cancelled', 'cancelled') $$,
    'without asking, only the run itself'
);

select pg_temp.raises($$ select counterfoil.cancel_run('org', 'nobody', null) $$, 'RL002', 'run_not_found');
select pg_temp.raises($$ select counterfoil.cancel_run('org', 'top', repeat('x', 2001)) $$, 'RL001', 'p_reason');

select * from finish();
rollback;
