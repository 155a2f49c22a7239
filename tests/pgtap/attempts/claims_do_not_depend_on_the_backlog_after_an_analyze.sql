-- SPEC 5 once more where the tables were analysed while they were empty: a planner that believes in no rows makes other
-- plans than one that knows nothing.
begin;
\ir ../setup.psql
\ir setup.psql
select plan(24);
analyze;
\ir backlog.psql
select * from finish();
rollback;
