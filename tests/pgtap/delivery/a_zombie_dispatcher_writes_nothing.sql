-- SPEC 2.4: a dispatcher whose lease lapsed or was replaced writes nothing, whichever function it calls. Functions of
-- one delivery raise RL004; those that answer fact by fact, or for many runs, answer that none is the caller's.
begin;
\ir ../setup.psql
\ir setup.psql
select plan(6);

select pg_temp.quiet_run('r');
select pg_temp.fact('r', 'a' || i) from generate_series(1, 2) as i;
select is(pg_temp.claim('d1', 'r'), array['a1', 'a2'], 'claimed');
select pg_temp.freeze('r', array['a1', 'a2']);

create temporary table zombie (function text not null, arguments text not null, answer text not null) on commit drop;
insert into zombie (function, arguments, answer)
select
    z.function,
    replace(replace(replace(replace(
        z.arguments,
        '$key', quote_literal(pg_temp.key('r', 'a1', 'a2'))),
        '$events', quote_literal(pg_temp.events('r', 'a1', 'a2'))),
        '$created', quote_literal(jsonb_set(pg_temp.events('r', 'a1'), '{0,type}', '"run.created"'))),
        '$started', quote_literal(jsonb_set(pg_temp.events('r', 'a1'), '{0,type}', '"run.started"'))),
    z.answer
from (
    values
    ('acknowledge_delivery', $$'acme', 'r', '{a1,a2}', 'd1', 64$$, 'RL004'),
    ('acknowledge_deliveries', $$'{acme}', '{r}', 'lifecycle', '{4}', 'd1'$$, 'nothing'),
    ('assert_delivery', $$'acme', 'r', 'd1', $key, $events$$, 'RL004'),
    ('append_run_events', $$'acme', 'r', $key, 'd1', $events$$, 'RL004'),
    ('append_run_created', $$'acme', 'r', $key, 'd1', $created$$, 'RL004'),
    (
        'append_run_started',
        $$'acme', 'r', $key, 'd1', $started, '{"orgId": "acme", "runId": "r", "playId": "p", "playName": "p"}'$$, 'RL004'
    ),
    ('dispatch_authority_for_lease', $$'acme', 'r', 'a1', 'd1'$$, 'RL004'),
    ('dispatch_launch_for_lease', $$'acme', 'r', 'a1', 'd1'$$, 'RL004'),
    ('materialize_runtime_outbox_event', $$'acme', 'a1', 'd1'$$, 'RL004'),
    ('materialize_runtime_outbox_event', $$'a1', 'd1'$$, 'RL004'),
    ('plan_delivery_pieces', $$'acme', 'r', '{a1,a2}', 'd1'$$, 'RL004'),
    ('release_delivery', $$'acme', 'r', '{a1,a2}', 'd1'$$, 'nothing'),
    ('release_delivery', $$'{a1,a2}', 'd1'$$, 'nothing'),
    ('renew_delivery', $$'acme', 'r', '{a1,a2}', 'd1', 30, true$$, 'RL004'),
    ('renew_delivery', $$'{a1,a2}', 'd1', 30, true$$, 'RL004'),
    ('renew_deliveries', $$'{acme}', '{r}', 'lifecycle', '{4}', 'd1', 30, true$$, 'nothing'),
    ('settle_delivery_failure', $$'acme', 'r', '{a1,a2}', 'd1', '{"message": "late", "retryable": true}'$$, 'nothing'),
    ('settle_delivery_failure', $$'{a1,a2}', 'd1', '{"message": "late", "retryable": true}'$$, 'nothing'),
    ('widen_delivery', $$'acme', 'r', 'a1', 'd1'$$, 'RL004')
) as z (function, arguments, answer);

-- Every row that a dispatcher or a gateway can change.
create function pg_temp.everything()
returns text language sql volatile parallel unsafe as $function$
    select concat_ws(
        '|',
        (select string_agg(t::text, ',' order by t::text) from counterfoil.lanes as t),
        (select string_agg(t::text, ',' order by t::text) from counterfoil.outbox as t),
        (select string_agg(t::text, ',' order by t::text) from counterfoil.fact_failures as t),
        (select string_agg(t::text, ',' order by t::text) from counterfoil.deliveries as t),
        (select string_agg(t::text, ',' order by t::text) from counterfoil.ledgers as t),
        (select string_agg(t::text, ',' order by t::text) from counterfoil.ledger_events as t),
        (select string_agg(t::text, ',' order by t::text) from counterfoil.ledger_appends as t),
        (select string_agg(t::text, ',' order by t::text) from counterfoil.run_journal as t),
        (select string_agg(t::text, ',' order by t::text) from counterfoil.runs as t)
    )
$function$;

-- The functions that did not answer as they must, or that changed something.
create function pg_temp.obeyed(out wrong text)
returns setof text language plpgsql volatile parallel unsafe as $function$
declare
  v_call record;
  v_before text := pg_temp.everything();
  v_raised record;
begin
  for v_call in select z.function, z.arguments, z.answer from pg_temp.zombie as z loop
    select r.* into v_raised
    from pg_temp.raised(format('select * from counterfoil.%I(%s)', v_call.function, v_call.arguments)) as r;
    if v_raised.state <> v_call.answer or pg_temp.everything() <> v_before then
      wrong := format('%s(%s): %s', v_call.function, v_call.arguments, to_jsonb(v_raised));
      return next;
    end if;
  end loop;
end
$function$;

select pg_temp.expire('r');
select is_empty('select pg_temp.obeyed()', 'a lease that lapsed allows nothing');
select is(pg_temp.claim('d2', 'r'), array['a1', 'a2'], 'another dispatcher claims');
select is_empty('select pg_temp.obeyed()', 'a lease that was replaced allows nothing');
select is((pg_temp.lane('r')).lease_owner, 'd2', 'and the heir keeps its own');

select results_eq(
    $$ select distinct z.function::text collate "C" from zombie as z order by 1 $$,
    $$
    select distinct p.proname::text collate "C"
    from pg_catalog.pg_proc as p
    where p.pronamespace = 'counterfoil'::regnamespace
        and 'p_lease_owner' = any(p.proargnames)
        and (
            has_function_privilege('counterfoil_dispatcher', p.oid, 'execute')
            or has_function_privilege('counterfoil_gateway', p.oid, 'execute')
        )
        -- These two are asked for a lease, not shown one.
        and p.proname not in ('claim_deliveries', 'take_over_delivery')
    order by 1
    $$,
    'no function that takes a delivery lease is missing here'
);

select * from finish();
rollback;
