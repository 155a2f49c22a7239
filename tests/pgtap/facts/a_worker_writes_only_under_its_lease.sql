-- A fact that brings an attempt and its lease is written under that lease, or not at all.
begin;
\ir ../setup.psql
\ir setup.psql
select plan(13);

select pg_temp.started_run('r1');

create function pg_temp.append_as(p_attempt text, p_lease text, p_event text)
returns text language sql as $function$
    select format($$ select counterfoil.append_fact('acme', 'r1', %L, 'run.progress', '{}', %s, %s) $$, p_event, p_attempt, p_lease)
$function$;

select lives_ok(pg_temp.append_as('1', '''r1-lease''', 'e1'), 'the holder writes');
select pg_temp.raises(pg_temp.append_as('1', '''another''', 'e2'), 'RL004', 'attempt_lease_not_current', 'another lease');
select pg_temp.raises(pg_temp.append_as('2', '''r1-lease''', 'e2'), 'RL004', 'attempt_lease_not_current', 'another attempt');
select pg_temp.raises(pg_temp.append_as('0', '''r1-lease''', 'e2'), 'RL001', 'p_attempt', 'no attempt');
select pg_temp.raises(pg_temp.append_as('null', '''r1-lease''', 'e2'), 'RL001', 'p_attempt', 'a lease without its attempt');
select pg_temp.raises(pg_temp.append_as('1', 'null', 'e2'), 'RL001', 'p_lease_id', 'an attempt without its lease');

update counterfoil.attempts set lease_expires_at = clock_timestamp() - interval '1 second' where run_id = 'r1';
select pg_temp.raises(pg_temp.append_as('1', '''r1-lease''', 'e2'), 'RL004', 'attempt_lease_not_current', 'a lease that lapsed');
select pg_temp.raises(pg_temp.append_as('1', '''r1-lease''', 'e1'), 'RL004', 'attempt_lease_not_current', 'even for a repeat');
select pg_temp.raises(
    $$ select counterfoil.append_facts('acme', 'r1', '[{"eventId": "e2", "eventType": "run.progress", "payload": {}}]', 1, 'r1-lease') $$,
    'RL004', 'attempt_lease_not_current', 'the same for many'
);
select pg_temp.raises($$ select counterfoil.append_facts('acme', 'r1', '[]', null, 'r1-lease') $$, 'RL001', 'p_attempt', 'and half a fence is none there either');
select pg_temp.raises($$ select counterfoil.append_facts('acme', 'r1', '[]', 1, null) $$, 'RL001', 'p_lease_id', 'whichever half it is');
select lives_ok(pg_temp.append_as('null', 'null', 'e3'), 'who brings none is not fenced');
select is((select count(*) from counterfoil.outbox as o where o.event_id = 'e2'), 0::bigint, 'the zombie wrote nothing');

select * from finish();
rollback;
