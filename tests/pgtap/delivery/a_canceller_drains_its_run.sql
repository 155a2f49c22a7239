-- Whoever cancels a run may take its facts from the dispatcher that holds them, and see them through.
begin;
\ir ../setup.psql
\ir setup.psql
select plan(21);

create function pg_temp.take_over(p_run text, p_owner text default 'canceller')
returns text[] language sql volatile as $function$
    select coalesce(array_agg(t.event_id), '{}') from counterfoil.take_over_delivery('acme', p_run, p_owner) as t
$function$;

select pg_temp.quiet_run('r');
select pg_temp.fact('r', 'a1');
select pg_temp.fact('r', 'a2', 'run.events');
select pg_temp.claim('d1', 'r');
select pg_temp.freeze('r', array['a1']);
create temporary table k as select (pg_temp.lane('r')).receipt_key as key;
select pg_temp.raises($$ select counterfoil.take_over_delivery('acme', 'r', 'canceller') $$, 'RL005', 'run_not_cancelled', 'not of any run');
select is((pg_temp.lane('r')).lease_owner, 'd1', 'whose facts stay where they are');

update counterfoil.runs set cancel_requested_at = clock_timestamp() where run_id = 'r';
select is(pg_temp.take_over('r'), array['a1'], 'once it is asked for, the canceller takes what another holds');
select is((pg_temp.lane('r')).lease_owner, 'canceller', 'by name');
select is((pg_temp.lane('r')).receipt_key, (select key from k), 'a frozen receipt as it is');
select ok((pg_temp.lane('r')).lease_expires_at > clock_timestamp() + interval '2 minutes', 'long enough for what it has to do');
select pg_temp.raises($$ select counterfoil.acknowledge_delivery('acme', 'r', array['a1'], 'd1') $$, 'RL004', 'delivery_lease_not_current', 'the former holder acknowledges nothing');
select pg_temp.raises($$ select counterfoil.renew_delivery('acme', 'r', array['a1'], 'd1') $$, 'RL004', 'delivery_lease_not_current', 'nor renews');
select pg_temp.raises($$ select counterfoil.assert_delivery('acme', 'r', 'd1', (select key from k)) $$, 'RL004', 'head_lease_owner_mismatch', 'nor proves anything');

select pg_temp.end_run('r', '{"reason": "stop"}', 'run.cancelled');
select is(
    pg_temp.grid($$ select a.kind, a.event_id from counterfoil.acknowledge_delivery('acme', 'r', array['a1'], 'canceller', null) as a $$),
    '[["acknowledged", "a1"], ["claimed", "a2"]]', 'it goes on'
);
select is(pg_temp.claim('d1', 'r'), '{}', 'nobody comes between');
select is(
    pg_temp.grid($$ select a.kind, a.event_id from counterfoil.acknowledge_delivery('acme', 'r', array['a2'], 'canceller', null) as a $$),
    '[["acknowledged", "a2"], ["claimed", "r-end"]]', 'to the end'
);
select is(
    pg_temp.grid($$ select a.kind, a.event_id from counterfoil.acknowledge_delivery('acme', 'r', array['r-end'], 'canceller', null) as a $$),
    '[["acknowledged", "r-end"]]', 'and through it'
);
select is(pg_temp.take_over('r'), '{}', 'then nothing is left');

select pg_temp.queued_run('q');
update counterfoil.runs set status = 'cancelled', ended_at = clock_timestamp(), terminal_event_id = 'q-end' where run_id = 'q';
select matches((select t.idempotency_key || (pg_temp.lane('q')).lease_owner from counterfoil.take_over_delivery('acme', 'q') as t), '^events:q:', 'a run that is cancelled already');
select matches((pg_temp.lane('q')).lease_owner, '^cancellation:[0-9a-f-]{36}$', 'an owner of its own where none is named');
select pg_temp.raises($$ select counterfoil.take_over_delivery('acme', 'nobody', 'c') $$, 'RL002', 'run_not_found');
select pg_temp.raises($$ select counterfoil.take_over_delivery('acme', 'q', '') $$, 'RL001', 'p_lease_owner');

-- What it asks for.
select pg_temp.quiet_run('o');
select pg_temp.fact('o', 'o' || i, 'run.events') from generate_series(1, 3) as i;
update counterfoil.runs set cancel_requested_at = clock_timestamp() where run_id = 'o';
select pg_temp.end_run('o', '{"reason": "stop"}', 'run.cancelled');
create function pg_temp.with_options(p_limit integer, p_allow boolean)
returns text[] language sql volatile parallel unsafe as $function$
    select array_agg(t.event_id) from counterfoil.take_over_delivery('acme', 'o', 'c', 20, p_limit, p_allow) as t
$function$;
select is(pg_temp.with_options(2, true), array['o1', 'o2'], 'no more than p_limit');
select is(pg_temp.with_options(64, true), array['o1', 'o2', 'o3', 'o-end'], 'combined, for a receiver that takes it');
select ok((pg_temp.lane('o')).lease_expires_at < clock_timestamp() + interval '21 seconds', 'for as long as it says');

select * from finish();
rollback;
