-- fire_schedules: fires what is due of some schedules.
--
-- Promises: one row a firing: admitted, with its run; skipped or buffered because the run before has not ended;
--           missed because nobody was there in time. All launches are one admission, all or none. Each schedule
--           says when to look at it again. At most a hundred firings of a schedule at a time.
-- Locks:    the caller holds the schedules; then what admit() locks.
-- Raises:   what admit() raises.
-- Since:    1

create or replace function counterfoil.fire_schedules(p_org_ids text[], p_names text[], p_now timestamptz)
returns table (org_id text, name text, fire_at timestamptz, outcome text, run_id text)
language plpgsql
volatile
parallel unsafe
strict
security invoker
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_schedule counterfoil.schedules;
    v_next timestamptz;
    v_buffered_at timestamptz;
    v_last_fire_at timestamptz;
    v_last_run_id text;
    v_outcome text;
    v_is_open boolean;
    v_fires boolean;
    v_latest timestamptz;
    v_launch jsonb;
    v_launches jsonb := '[]'::jsonb;
    v_org_ids text[] := array[]::text[];
    v_names text[] := array[]::text[];
    v_fired timestamptz[] := array[]::timestamptz[];
    v_outcomes text[] := array[]::text[];
    v_run_ids text[] := array[]::text[];
begin
    for v_place in 1..cardinality(p_names) loop
        select s.* into strict v_schedule
        from counterfoil.schedules as s
        where s.org_id = p_org_ids[v_place] and s.name = p_names[v_place];
        v_is_open := exists (
            select
            from counterfoil.runs as r
            where r.org_id = v_schedule.org_id and r.run_id = v_schedule.last_run_id and r.ended_at is null
        );
        v_next := v_schedule.next_fire_at;
        v_buffered_at := v_schedule.buffered_at;
        v_last_fire_at := v_schedule.last_fire_at;
        v_last_run_id := v_schedule.last_run_id;
        v_outcome := v_schedule.last_outcome;

        for v_turn in 1..100 loop
            fire_at := v_next;
            v_fires := false;
            if v_buffered_at is not null and not v_is_open then
                fire_at := v_buffered_at;
                v_buffered_at := null;
                v_fires := true;
            elsif fire_at is null or fire_at > p_now then
                exit;
            elsif fire_at < p_now - make_interval(secs => v_schedule.catch_up_seconds) then
                v_outcome := 'missed';
                v_next := counterfoil.next_fire_at(
                    v_schedule, p_now - make_interval(secs => v_schedule.catch_up_seconds) - interval '1 microsecond'
                );
            else
                v_latest := case
                    when v_schedule.catch_up = 'all' then fire_at
                    else counterfoil.last_fire_at(v_schedule, fire_at, p_now)
                end;
                if v_latest > fire_at then
                    v_outcome := 'missed';
                    v_next := v_latest;
                else
                    v_fires := v_schedule.overlap = 'allow' or not v_is_open;
                    if not v_fires then
                        v_outcome := case
                            when v_schedule.overlap = 'buffer' and v_buffered_at is null then 'buffered' else 'skipped'
                        end;
                        if v_outcome = 'buffered' then
                            v_buffered_at := fire_at;
                        end if;
                    end if;
                    v_next := counterfoil.next_fire_at(v_schedule, fire_at);
                end if;
            end if;

            run_id := null;
            if v_fires then
                v_launch := counterfoil.schedule_launch(v_schedule, fire_at, p_now);
                v_launches := v_launches || jsonb_build_array(v_launch);
                run_id := v_launch ->> 'runId';
                v_is_open := true;
                v_outcome := 'admitted';
                v_last_fire_at := fire_at;
                v_last_run_id := run_id;
            end if;
            v_org_ids := v_org_ids || v_schedule.org_id;
            v_names := v_names || v_schedule.name;
            v_fired := v_fired || fire_at;
            v_outcomes := v_outcomes || v_outcome;
            v_run_ids := v_run_ids || run_id;
        end loop;

        -- A run that ends just now may not see that a firing waits for it: it is looked for.
        update counterfoil.schedules as s
        set
            next_fire_at = v_next,
            look_at = least(
                v_next, case when v_buffered_at is not null then p_now + interval '5 seconds' end
            ),
            buffered_at = v_buffered_at,
            last_fire_at = v_last_fire_at,
            last_run_id = v_last_run_id,
            last_outcome = v_outcome,
            last_error = null
        where s.org_id = v_schedule.org_id and s.name = v_schedule.name;
    end loop;

    if jsonb_array_length(v_launches) > 0 then
        perform from counterfoil.admit(v_launches, false) as a;
    end if;
    return query
    select g.org_id, g.name, g.fire_at, g.outcome, g.run_id
    from unnest(v_org_ids, v_names, v_fired, v_outcomes, v_run_ids) with ordinality as g (org_id, name, fire_at, outcome, run_id, place)
    order by g.place;
end
$function$;

comment on function counterfoil.fire_schedules(text[], text[], timestamptz) is
'Fires what is due of the schedules named, whose rows the caller holds: one row a firing. Private.';

revoke all on function counterfoil.fire_schedules(text[], text[], timestamptz) from public;
