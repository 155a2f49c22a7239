-- After a burst the space of the indexes is used again but does not go back: health() says how much a reindex would free.
begin;
\ir ../setup.psql
select plan(4);

create function pg_temp.disk(p_key text)
returns bigint language sql volatile parallel unsafe as $function$
  select (counterfoil.health() #>> array['disk', 'run_journal', p_key])::bigint
$function$;

insert into counterfoil.run_journal (
  org_id, run_id, identity, channel, position, producer_attempt, occurred_at, line, content_digest, event_id, recorded_at, terms
)
select 'acme', 'run' || n % 100, 'in:1:log:' || lpad(n::text, 8, '0'), 'log', n, 1, now(), 'line ' || n, sha256(''), 'e', now(), array[n]
from generate_series(1, 30000) as n;
analyze counterfoil.run_journal;
select cmp_ok(pg_temp.disk('indexMegabytes'), '>=', 3::bigint, 'the indexes of the journal');
select cmp_ok(pg_temp.disk('megabytes'), '>', pg_temp.disk('indexMegabytes'), 'and the journal as a whole');
select is(pg_temp.disk('reindexFreesMegabytes'), 0::bigint, 'a reindex frees nothing of what is full');

delete from counterfoil.run_journal where position > 1000;
analyze counterfoil.run_journal;
select cmp_ok(pg_temp.disk('reindexFreesMegabytes'), '>=', 2::bigint, 'but most of what a burst has left behind');

select * from finish();
rollback;
