-- What is blocked behind a frozen receipt is no part of it: each is replayed for itself.
begin;
\ir ../setup.psql
\ir setup.psql
select plan(8);

create function pg_temp.block(p_run text, p_events text[], p_only text default null)
returns void language sql as $function$
    select from counterfoil.settle_delivery_failure('acme', p_run, p_events, 'd1',
        jsonb_strip_nulls(jsonb_build_object('message', 'refused', 'status', 422, 'retryable', false, 'eventId', p_only)))
$function$;
create function pg_temp.replay(p_event text)
returns jsonb language sql as $function$
    select coalesce(jsonb_agg(r.event_id), '[]') from counterfoil.replay_blocked('acme', 'r', p_event, 'mended') as r
$function$;
create function pg_temp.blocked()
returns jsonb language sql as $function$
    select coalesce(jsonb_agg(b.event_id), '[]') from counterfoil.list_blocked('acme') as b
$function$;

-- a3 is blocked on its own; then a1 and a2 are frozen, attempted and refused.
select pg_temp.quiet_run('r');
select pg_temp.fact('r', 'a' || i) from generate_series(1, 4) as i;
select pg_temp.claim('d1', 'r');
select pg_temp.block('r', array['a1', 'a2', 'a3', 'a4'], 'a3');
select is(pg_temp.claim('d1', 'r'), array['a1', 'a2'], 'what stands before a blocked fact is claimed');
select pg_temp.freeze('r', array['a1', 'a2']);
select pg_temp.block('r', array['a1', 'a2']);
select is(pg_temp.blocked(), '["a3", "a1", "a2"]', 'both are blocked');

select is(pg_temp.replay('a2'), '["a1", "a2"]', 'the receipt is replayed without what lies behind it');
select is(pg_temp.blocked(), '["a3"]', 'which stays blocked');
select is(pg_temp.claim('d1', 'r', 1), array['a1', 'a2'], 'and goes as the same set');
select pg_temp.block('r', array['a1', 'a2']);

select is(pg_temp.replay('a3'), '["a3"]', 'what lies behind it is replayed alone');
select is(pg_temp.blocked(), '["a1", "a2"]', 'the receipt stays blocked');
select is(pg_temp.claim('d1', 'r'), '{}', 'and with it the lane');

select * from finish();
rollback;
