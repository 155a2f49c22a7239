-- Traffic for the day of benchmarks/retention.py: so many runs from admission to the last acknowledgement, each with a
-- step, a progress event, ten log lines and two at its end. HTTP is left out: the receiver's functions are called here.

create or replace procedure public.bench_traffic(p_name text, p_runs integer) language plpgsql as $$
declare
  v_run record;
  v_claim record;
begin
  perform from counterfoil.admit_launches((
    select jsonb_agg(jsonb_build_object('orgId', 'bench', 'runId', p_name || '-' || n, 'playId', 'p',
      'playName', 'p', 'executorToken', 't', 'baseUrl', 'https://x.example', 'input', repeat('i', 200)))
    from generate_series(1, p_runs) as n)) as a;
  for v_run in select c.* from counterfoil.claim_attempts('w', p_runs, 60, null, 'default') as c loop
    perform from counterfoil.append_facts('bench', v_run.run_id, jsonb_build_array(
      jsonb_build_object('eventId', v_run.run_id || 'p', 'eventType', 'run.progress', 'payload',
        jsonb_build_object('done', 1)),
      jsonb_build_object('eventId', v_run.run_id || 'l', 'eventType', 'runner.logs', 'payload',
        jsonb_build_object('searchOnly', true, 'deferredProjection', true, 'lines', (
          select jsonb_agg(format('row %s of %s was read in %s ms', n, v_run.run_id, n * 7 % 83))
          from generate_series(1, 10) as n)))));
    perform from counterfoil.claim_receipts('bench', v_run.run_id, v_run.attempt, array[v_run.run_id || 'k'],
      array['k'], '{}');
    perform from counterfoil.complete_receipts('bench', v_run.run_id, jsonb_build_array(jsonb_build_object(
      'key', v_run.run_id || 'k', 'leaseId', 'k', 'runAttempt', v_run.attempt, 'output', repeat('o', 200))));
    perform from counterfoil.complete_attempt('bench', v_run.run_id, v_run.attempt, v_run.lease_id,
      jsonb_build_object('result', repeat('r', 100), 'terminalLogLines', jsonb_build_array('done', 'bye')));
  end loop;
  commit;
  loop
    for v_claim in
      select c.run_id, min(c.idempotency_key) as key, array_agg(c.event_id order by c.seq) as event_ids,
        (select jsonb_agg(e.value order by i.nth, e.nth) from unnest(array_agg(c.events order by c.seq))
          with ordinality as i (events, nth) cross join lateral jsonb_array_elements(i.events)
          with ordinality as e (value, nth)) as events
      from counterfoil.claim_deliveries('me', p_max_runs => 100, p_allow_ingress_prefix => true) as c
      group by c.run_id
    loop
      perform from counterfoil.renew_delivery('bench', v_claim.run_id, v_claim.event_ids, 'me', 60, true);
      if v_claim.events -> 0 ->> 'type' = 'run.created' then
        perform from counterfoil.append_run_created('bench', v_claim.run_id, v_claim.key, 'me', v_claim.events);
      elsif v_claim.events -> 0 ->> 'type' = 'run.started' then
        perform from counterfoil.append_run_started('bench', v_claim.run_id, v_claim.key, 'me', v_claim.events, null);
      else
        perform from counterfoil.append_run_events('bench', v_claim.run_id, v_claim.key, 'me', v_claim.events);
      end if;
      perform from counterfoil.acknowledge_delivery('bench', v_claim.run_id, v_claim.event_ids, 'me');
    end loop;
    exit when not found;
    commit;
  end loop;
  loop
    for v_claim in
      select c.run_id, array_agg(c.event_id order by c.seq) as event_ids, bool_or(c.deferred) as deferred
      from counterfoil.claim_deliveries('me', p_max_runs => 100, p_lane => 'search') as c
      group by c.run_id
    loop
      perform counterfoil.materialize_runtime_outbox_event('bench', e.id, 'me')
      from unnest(v_claim.event_ids) as e (id);
      perform from counterfoil.acknowledge_delivery('bench', v_claim.run_id, v_claim.event_ids, 'me');
    end loop;
    exit when not found;
    commit;
  end loop;
end $$;
