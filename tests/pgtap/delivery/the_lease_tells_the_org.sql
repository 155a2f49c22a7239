-- A dispatcher that asks for authority need not say for which org.
begin;
\ir ../setup.psql
\ir setup.psql
select plan(7);

select pg_temp.quiet_run('r', o.org_id) from (values ('acme'), ('beta'), ('idle')) as o (org_id);
select counterfoil.append_fact(o.org_id, 'r', 'e', 'run.progress', '{"n": 1}') from (values ('acme'), ('beta')) as o (org_id);
select pg_temp.claim('owner', 'r', p_org => 'beta');

select is(counterfoil.dispatch_authority_for_lease(null, 'r', 'e', 'owner') ->> 'orgId', 'beta', 'of two orgs with such a fact, the one whose lease it is');
select pg_temp.claim('owner2', 'r', p_org => 'acme');
select is(counterfoil.dispatch_authority_for_lease(null, 'r', 'e', 'owner2') ->> 'orgId', 'acme', 'for each owner its own');
select pg_temp.raises($$ select counterfoil.dispatch_authority_for_lease(null, 'r', 'e', 'stranger') $$, 'RL004', 'head_lease_owner_mismatch', 'a stranger gets none');
select pg_temp.raises($$ select counterfoil.dispatch_authority_for_lease(null, 'q', 'e', 'owner') $$, 'RL002', 'fact_not_found', 'nor has another run such a fact');
select pg_temp.raises($$ select counterfoil.dispatch_authority_for_lease(null, 'r', 'f', 'owner') $$, 'RL002', 'fact_not_found', 'nor this one another');
select pg_temp.raises($$ select counterfoil.dispatch_authority_for_lease(null, '', 'e', 'owner') $$, 'RL001', 'p_run_id', 'what is no id is named');
select pg_temp.raises($$ select counterfoil.dispatch_authority_for_lease(null, 'r', 'e', null) $$, 'RL001', 'p_lease_owner', 'also the owner');

select * from finish();
rollback;
