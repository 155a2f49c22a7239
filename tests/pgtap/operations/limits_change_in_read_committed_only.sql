-- A recount under an older snapshot would count what was, for good.
begin isolation level repeatable read;
\ir ../setup.psql
select plan(2);

select pg_temp.raises(
    $$ select counterfoil.set_admission_limits('acme', 'org', '{"maxQueued": 5}') $$, 'RL005', 'read_committed_needed',
    'in repeatable read limits stay as they are'
);
select is((select count(*) from counterfoil.admission_limits as a), 0::bigint, 'nothing was written');

select * from finish();
rollback;
