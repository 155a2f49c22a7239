-- SPEC 2.4: an expired or replaced lease writes nothing and gets RL004, in every function that takes one.
begin;
\ir ../setup.psql
\ir setup.psql
select plan(26);

select is(pg_temp.admit('a'), 'admitted', 'a run');
select is(pg_temp.claim(), array['a'], 'is claimed');
create temporary table zombie on commit drop as
select c.call
from (select pg_temp.proof('a') as lease) as p
cross join lateral (
    values
        (format('select counterfoil.complete_attempt(%s, %L)', p.lease, '{}')),
        (format('select counterfoil.fail_attempt(%s, %L)', p.lease, '{"error": {"message": "m"}}')),
        (format('select counterfoil.release_attempt(%s)', p.lease)),
        (format('select counterfoil.suspend_attempt(%s, %L)', p.lease, 'why')),
        (format('select counterfoil.park_attempt(%s)', p.lease)),
        (format('select counterfoil.record_runner_terminal(%s, %L)', p.lease, '{"status": "completed"}')),
        (format('select counterfoil.direct_complete_runner_terminal(%s, %L)', p.lease, '{"status": "completed"}'))
) as c (call);

select pg_temp.lapse('a');
select pg_temp.raises(z.call, 'RL004', 'attempt_lease_not_current', 'lapsed: ' || z.call) from zombie as z;
select is((select r.outcome from counterfoil.recover_attempts(9, 'default') as r), 'requeued', 'the attempt is taken back');
select pg_temp.raises(z.call, 'RL004', 'attempt_lease_not_current', 'taken back: ' || z.call) from zombie as z;
select is(pg_temp.claim(1, null, 'default', 'other'), array['a'], 'and the run claimed by another worker');
select pg_temp.raises(z.call, 'RL004', 'attempt_lease_not_current', 'replaced: ' || z.call) from zombie as z;
select is(
    (
        select array[r.status, max(o.seq)::text]
        from counterfoil.runs as r
        inner join counterfoil.outbox as o using (org_id, run_id)
        group by r.status
    ),
    array['running', '2'], 'the zombie wrote nothing'
);

select * from finish();
rollback;
