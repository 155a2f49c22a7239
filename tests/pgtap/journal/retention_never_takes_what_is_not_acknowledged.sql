-- SPEC 9: retention goes by the acknowledgement, however old a fact is: never a pending, leased, frozen or blocked one.
begin;
\ir ../setup.psql
\ir setup.psql
select plan(10);

select pg_temp.run_with(
  array['run.progress', 'runner.logs'],
  array['{"done": 1}'::jsonb, '{"lines": ["text"]}'::jsonb]
);
-- Written long ago, and not claimed by anybody.
update counterfoil.outbox as o set created_at = now() - interval '400 days';
update counterfoil.lanes as l
set lease_owner = null, lease_expires_at = null, lease_through_seq = null, due_at = now() - interval '400 days';

create function pg_temp.purged()
returns jsonb language sql volatile parallel unsafe as $function$
  select pg_temp.rows($$ select p.logs_purged, p.facts_removed from counterfoil.purge_delivered(100) as p $$)
$function$;
create function pg_temp.kept()
returns text language sql volatile parallel unsafe as $function$
  select string_agg(o.event_id || case when o.payload ? 'lines' then '+text' else '' end, ' ' order by o.seq) from counterfoil.outbox as o
$function$;

select is(pg_temp.purged(), '[{"logs_purged": 0, "facts_removed": 0}]', 'nothing pending goes');

-- The first fact is delivered, long ago; the others are still to be.
select is((select count(*) from counterfoil.claim_deliveries('d', 30, 1, 1, 'acme', 'r1')), 1::bigint, 'a dispatcher has the first fact');
select ok(
  (select count(*) > 0 from counterfoil.acknowledge_delivery('acme', 'r1', array['created'], 'd')), 'and acknowledges it'
);
update counterfoil.deliveries as d set delivered_at = now() - interval '400 days';
select is(pg_temp.purged(), '[{"logs_purged": 1, "facts_removed": 1}]', 'what is acknowledged goes');
select is(pg_temp.kept(), 'f1 f2+text', 'and nothing else');

-- Under a live lease, and frozen.
update counterfoil.lanes as l set lease_owner = null, lease_expires_at = null, lease_through_seq = null;
select is((select count(*) from counterfoil.claim_deliveries('d', 30, 64, 1, 'acme', 'r1')), 2::bigint, 'the others are under a lease');
select ok(
  (select n.idempotency_key is not null from counterfoil.renew_delivery('acme', 'r1', array['f1', 'f2'], 'd', 30, true) as n),
  'and frozen'
);
select is(pg_temp.purged(), '[{"logs_purged": 0, "facts_removed": 0}]', 'nothing that is on its way goes');

-- Refused for good: the lane is blocked.
select counterfoil.settle_delivery_failure('acme', 'r1', array['f1', 'f2'], 'd', '{"message": "no", "retryable": false}');
select is(
  (select count(*) from counterfoil.lanes as l where l.blocked_at is not null), 1::bigint, 'the receiver refuses them for good'
);
select is(pg_temp.purged() || to_jsonb(pg_temp.kept()), '[{"logs_purged": 0, "facts_removed": 0}, "f1 f2+text"]', 'and nothing blocked goes');

select * from finish();
rollback;
