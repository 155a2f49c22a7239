-- Whoever asks for the key later gets the output: a number that its parser cannot read would stop it.
begin;
\ir ../setup.psql
\ir setup.psql
select plan(5);

select pg_temp.held_run('r1');
select is(pg_temp.claim('r1', array['k'], array['a']), '[["running", true]]', 'a receipt is claimed');
select pg_temp.raises(
    $$ select counterfoil.complete_receipts('acme', 'r1', pg_temp.item('k', 'a', '{"output": {"n": [1e5000]}}')) $$,
    'RL001', 'p_receipts[0].output', 'an output with a number of 5001 digits is refused'
);
select pg_temp.raises(
    $$ select counterfoil.fail_receipts('acme', 'r1', pg_temp.item('k', 'a', '{"error": "e", "errorPayload": {"n": 1e5000}}')) $$,
    'RL001', 'p_receipts[0].errorPayload', 'so is such a failure'
);
select lives_ok(
    $$ select counterfoil.complete_receipts('acme', 'r1', pg_temp.item('k', 'a', '{"output": {"n": [1e900]}}')) $$,
    'one of 901 digits is kept'
);
select is(
    (select g.receipt ->> 'status' from counterfoil.get_receipts('acme', array['k']) as g), 'completed', 'and read'
);

select * from finish();
rollback;
