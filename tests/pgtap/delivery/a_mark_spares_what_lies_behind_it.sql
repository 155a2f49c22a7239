-- Claims that start where earlier ones have come to, and those that look at all.
begin;
\ir ../setup.psql
\ir setup.psql
select plan(15);

-- old came before new; n is a newly launched run, w waits in public, t has ended.
select pg_temp.quiet_run('old'), pg_temp.fact('old', 'old-p');
select pg_temp.quiet_run('new'), pg_temp.fact('new', 'new-p');
select pg_temp.quiet_run('w'), pg_temp.fact('w', 'w-w', 'run.waiting', '{"kind": "public"}');
select pg_temp.quiet_run('t'), pg_temp.end_run('t');
select pg_temp.queued_run('n');

create function pg_temp.taken(p_marks timestamptz[], p_priority text default 'admission_first', p_org text default null)
returns text[] language plpgsql volatile parallel unsafe as $function$
declare
    v_runs text[];
begin
    update counterfoil.lanes as l set lease_owner = null, lease_expires_at = null, lease_through_seq = null;
    select coalesce(array_agg(c.run_id), '{}') into v_runs
    from counterfoil.claim_deliveries('d', p_max_runs => 9, p_org_id => p_org, p_head_priority => p_priority, p_marks => p_marks) as c;
    return v_runs;
end
$function$;

create temporary table due on commit drop as
select l.run_id, l.priority, l.due_at from counterfoil.lanes as l where l.lane = 'lifecycle';
create temporary table past on commit drop as
select
    array(select max(d.due_at) from due as d group by d.priority order by d.priority) as marks,
    array(select max(d.due_at) + interval '1 microsecond' from due as d group by d.priority order by d.priority) as behind;

select is(
    (select array_agg(distinct c.marks) from counterfoil.claim_deliveries('d', p_max_runs => 9) as c), (select array[marks] from past),
    'a claim answers, for each priority, how far it came'
);
select is(pg_temp.taken(null), array['n', 't', 'w', 'old', 'new'], 'without marks all is looked at');
select is(pg_temp.taken(array[null, null, null, null]::timestamptz[]), array['n', 't', 'w', 'old', 'new'], 'as with marks of nothing');
select is(pg_temp.taken((select marks from past)), array['n', 't', 'w', 'new'], 'what lies at its mark is looked at, what lies before it is not');
select is(pg_temp.taken((select behind from past)), '{}'::text[], 'nor with the mark behind all');
select is(
    pg_temp.taken((select array[p.behind[1], null, p.behind[3], null] from past as p)), array['t', 'old', 'new'], 'each priority has its own'
);
select is(pg_temp.taken((select marks from past), 'oldest_ready'), array['new', 'w', 't', 'n'], 'the oldest first, too');
select is(pg_temp.taken((select behind from past), 'oldest_ready'), '{}'::text[], 'with all behind');
select is(pg_temp.taken((select marks from past), p_org => 'acme'), array['n', 't', 'w', 'new'], 'and for one org');
select is(pg_temp.taken((select marks from past), 'oldest_ready', 'acme'), array['new', 'w', 't', 'n'], 'in either order');

-- A piece: from the first four to the second four.
select is(
    pg_temp.taken((select array[null, null, null, d.due_at, null, null, null, d.due_at]::timestamptz[] from due as d where d.run_id = 'old')),
    array['n', 't', 'w', 'old'], 'what lies behind its second mark is not looked at, what lies at it is'
);
select is(
    pg_temp.taken((select p.behind || p.behind from past as p)), '{}'::text[], 'nothing lies between two marks behind all'
);
select is(
    pg_temp.taken((select array_fill(null::timestamptz, array[4]) || (select min(d.due_at) from due as d)
        || (select array_fill(min(d.due_at), array[3]) from due as d) from past as p), 'oldest_ready'),
    array['old'], 'the oldest first, too'
);
select is(
    pg_temp.taken((select array_fill(null::timestamptz, array[4]) || array_fill(min(d.due_at), array[4]) from due as d), 'admission_first', 'acme'),
    array['old'], 'and for one org'
);
select ok(
    (
        select bool_and(c.marks is null)
        from counterfoil.claim_deliveries('e', p_run_id => 'new', p_marks => (select p.behind from past as p)) as c
    ),
    'a run that is named is found behind any mark, and tells of none'
);

select * from finish();
rollback;
