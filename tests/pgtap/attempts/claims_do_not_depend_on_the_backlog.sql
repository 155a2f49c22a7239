-- SPEC 5: the cost of a claim does not grow with the backlog, also under plans that were made while the tables were
-- empty; recovery reads only active runs of its release lane. Counted in rows read, not in time.
begin;
\ir ../setup.psql
\ir setup.psql
select plan(24);
\ir backlog.psql
select * from finish();
rollback;
