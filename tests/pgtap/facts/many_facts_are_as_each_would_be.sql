-- append_facts leaves what append_fact would leave, fact by fact: positions, lanes, urgency; and wakes whom it would wake.
begin;
\ir ../setup.psql
\ir ../delivery/setup.psql
select plan(9);

-- Notifications leave with a commit, so the one who would send them notes it down instead.
create temporary table woken (queue text not null) on commit drop;
create or replace function counterfoil.wake(p_queue text)
returns void language sql volatile parallel unsafe strict as $function$ insert into pg_temp.woken values (p_queue) $function$;
insert into counterfoil.listeners (listener, queue, asleep_until)
select 'sleeper', q, clock_timestamp() + interval '1 hour' from unnest(array['lifecycle', 'search']) as q;

-- Appends [id, type, payload] … one by one in org acme, at once in org other. What that did: whom it woke and each lane's urgency,
-- with + where the lane went to the back; or the two states where they differ.
create function pg_temp.state(p_org text, p_run text, p_since timestamptz)
returns jsonb language sql volatile parallel unsafe as $function$
    select jsonb_build_object(
        'woken', (select jsonb_agg(w.queue order by w.queue) from woken as w),
        'lanes', (
            select jsonb_agg(to_jsonb(l) - array['org_id', 'due_at'] || jsonb_build_object('back', l.due_at > p_since) order by l.lane)
            from counterfoil.lanes as l where l.org_id = p_org and l.run_id = p_run
        ),
        'facts', (
            select jsonb_agg(to_jsonb(o) - array['org_id', 'delivery_key', 'created_at'] order by o.seq)
            from counterfoil.outbox as o where o.org_id = p_org and o.run_id = p_run
        )
    )
$function$;
create function pg_temp.appended(p_run text, p_facts jsonb)
returns jsonb language plpgsql volatile parallel unsafe as $function$
declare
    v_since timestamptz := clock_timestamp();
    v_each jsonb;
    v_many jsonb;
begin
    truncate woken;
    perform counterfoil.append_fact('acme', p_run, f.fact ->> 0, f.fact ->> 1, f.fact -> 2)
    from jsonb_array_elements(p_facts) with ordinality as f (fact, ordinality);
    v_each := pg_temp.state('acme', p_run, v_since);
    truncate woken;
    perform counterfoil.append_facts('other', p_run, jsonb_agg(
        jsonb_build_object('eventId', f.fact -> 0, 'eventType', f.fact -> 1, 'payload', f.fact -> 2) order by f.ordinality
    ))
    from jsonb_array_elements(p_facts) with ordinality as f (fact, ordinality);
    v_many := pg_temp.state('other', p_run, v_since);
    if v_each <> v_many then
        return jsonb_build_array('each', v_each, 'many', v_many);
    end if;
    return jsonb_build_array(v_many -> 'woken', (
        select jsonb_agg((l ->> 'priority') || case when (l -> 'back')::boolean then '+' else '' end)
        from jsonb_array_elements(v_many -> 'lanes') as l
    ));
end
$function$;

select pg_temp.quiet_run(r, o) from unnest(array['r', 'w', 'b', 'e']) as r, unnest(array['acme', 'other']) as o;

select is(
    pg_temp.appended('r', '[["z", "run.progress", {}], ["y", "runner.logs", {"searchOnly": true, "deferredProjection": true}],
        ["x", "run.events", {"events": [{"type": "a"}]}], ["w", "step.receipt", {"searchOnly": true}], ["v", "run.progress", {"deferredProjection": true}]]'),
    '[["lifecycle", "search"], ["3+", "3+"]]', 'into empty lanes: each wakes its sleepers once'
);
select is(pg_temp.appended('r', '[["a1", "run.progress", {}], ["a2", "run.resumed", {}]]'), '[null, ["3", "3"]]', 'into a lane that waits: nobody is woken');
select is(
    pg_temp.appended('r', '[["b1", "run.waiting", {"kind": "detached_runner"}], ["b2", "run.progress", {}]]'), '[null, ["3", "3"]]', 'a park is in no hurry'
);
select is(
    pg_temp.appended('r', '[["c2", "run.waiting", {"reason": "why"}], ["c1", "run.progress", {}]]'), '[null, ["2+", "3"]]',
    'a public wait is: the lane goes to the back of those that are'
);
select is(pg_temp.appended('r', '[["d1", "run.progress", {}], ["d2", "run.progress", {}]]'), '[null, ["2", "3"]]', 'which it stays');
select is(
    pg_temp.appended('w', '[["wa", "run.progress", {}], ["wb", "run.waiting", {"reason": "why"}], ["wc", "run.progress", {}]]'),
    '[["lifecycle"], ["2+"]]', 'a lane that begins with a wait in it'
);

-- A backoff is not cut short.
select pg_temp.appended('b', '[["ba", "run.progress", {}]]');
update counterfoil.lanes set due_at = '2100-01-01' where run_id = 'b';
select pg_temp.appended('b', '[["bb", "run.waiting", {"reason": "why"}], ["bc", "run.progress", {}]]');
select is(
    (select array_agg(l.priority || ' ' || (l.due_at = '2100-01-01')) from counterfoil.lanes as l where l.run_id = 'b'),
    array['2 true', '2 true'], 'urgency does not cut a backoff short'
);

-- Late logs.
select pg_temp.end_run('e', p_org => o) from unnest(array['acme', 'other']) as o;
select is(pg_temp.appended('e', '[["ea", "runner.logs", {}], ["eb", "step.receipt", {}]]'), '[null, ["1"]]', 'late logs leave an end what it is');
select is(
    (select array_agg(l.terminal_seq) from counterfoil.lanes as l where l.run_id = 'e'), array[3, 3]::bigint[], 'where it is'
);

select * from finish();
rollback;
