-- What lies behind a prefix is neither fetched nor unpacked (SPEC 8.4): large payloads lie in the outbox's TOAST table,
-- where each that is read is looked up. Two small facts go first, eight large batches of a producer wait behind them.
begin;
\ir ../setup.psql
\ir setup.psql
select plan(8);

create function pg_temp.payloads_read()
returns bigint language sql volatile parallel unsafe as $function$
    select coalesce(s.idx_scan, 0) + coalesce(s.seq_scan, 0)
    from pg_stat_xact_all_tables as s
    inner join pg_class as c on c.reltoastrelid = s.relid
    where c.oid = 'counterfoil.outbox'::regclass
$function$;
create function pg_temp.read_by(p_statement text)
returns bigint language plpgsql volatile parallel unsafe as $function$
declare
    v_before bigint := pg_temp.payloads_read();
begin
    execute p_statement;
    return pg_temp.payloads_read() - v_before;
end
$function$;

select pg_temp.quiet_run('r');
select pg_temp.fact('r', 'p' || i) from generate_series(1, 2) as i;
select counterfoil.append_fact('acme', 'r', 'b' || i, 'run.events', jsonb_build_object('events', jsonb_build_array(
    jsonb_build_object('type', 'sheet.row', 'text', (select string_agg(md5(i || '-' || n), '') from generate_series(1, 600) as n))
)))
from generate_series(1, 8) as i;

create temporary table k as
select pg_temp.key('r', 'p1', 'p2') as receipt_key, pg_temp.events('r', 'p1', 'p2') as events;
select is(pg_temp.read_by('select pg_temp.claim()'), 0::bigint, 'a claim');
select is((pg_temp.lane('r')).lease_through_seq, 4::bigint, 'which took what goes together');
select is(
    pg_temp.read_by(format('select counterfoil.assert_delivery(%L, %L, %L, %L, %L)', 'acme', 'r', 'd1', k.receipt_key, k.events)),
    0::bigint, 'a proof before the freeze'
)
from k;
select is(pg_temp.read_by($$select pg_temp.freeze('r', array['p1', 'p2'])$$), 0::bigint, 'the freeze, which cuts it');
select is(
    pg_temp.read_by(format('select counterfoil.assert_delivery(%L, %L, %L, %L, %L)', 'acme', 'r', 'd1', k.receipt_key, k.events)),
    0::bigint, 'a proof of the receipt'
)
from k;
select is(
    pg_temp.read_by($$select counterfoil.acknowledge_delivery('acme', 'r', array['p1', 'p2'], 'd1', 0)$$), 0::bigint, 'an acknowledgement'
);
select cmp_ok(pg_temp.read_by('select pg_temp.claim()'), '>', 0::bigint, 'what is carried is read');

-- Compressed ones too, whose size as JSON is known only unpacked.
select pg_temp.quiet_run('s');
select pg_temp.fact('s', 'q1');
select counterfoil.append_fact('acme', 's', 'c' || i, 'run.events', jsonb_build_object('events', jsonb_build_array(
    jsonb_build_object('type', 'sheet.row', 'text', (select string_agg(md5(i || '-' || n) || repeat('x', 20), '') from generate_series(1, 600) as n))
)))
from generate_series(1, 8) as i;
select is(pg_temp.read_by($$select pg_temp.claim('d2', 's')$$), 0::bigint, 'a claim before compressed facts');
select * from finish();
rollback;
