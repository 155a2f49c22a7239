-- launch_roots: the root of the tree that each of some new runs belongs to.
--
-- Promises: in the order of p_ordinals: the launch's rootRunId, else its parent's root, else the run itself. A parent
--           exists in the org, or is launched by the same call.
-- Locks:    nothing.
-- Raises:   RL002 parent_run_not_found; RL001 (DETAIL: the parentRunId) for a circle of parents.
-- Since:    1

create or replace function counterfoil.launch_roots(p_launches jsonb, p_ordinals bigint[], p_single boolean)
returns text[]
language plpgsql
stable
parallel safe
strict
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_material = off
set jit = off
as $function$
declare
    -- Ids hold no line feed, so that org and run make one key.
    v_places jsonb;
    v_parents text[];
    v_roots text[];
    v_settled boolean[];
    v_unsettled integer;
    v_left integer;
    v_ordinal bigint;
    v_where text;
begin
    select
        jsonb_object_agg(concat(l.launch ->> 'orgId', e'\n', l.launch ->> 'runId'), n.place),
        array_agg(concat(l.launch ->> 'orgId', e'\n', l.launch ->> 'parentRunId') order by n.place)
    into v_places, v_parents
    from unnest(p_ordinals) with ordinality as n (ordinal, place)
    cross join lateral (select p_launches -> (n.ordinal - 1)::integer as launch) as l;

    select
        array_agg(
            coalesce(l.launch ->> 'rootRunId', r.root_run_id, case when l.launch ->> 'parentRunId' is null then l.launch ->> 'runId' end)
            order by n.place
        ),
        -- A run has a place in a tree once its parent has one, whatever it says about its root.
        array_agg(l.launch ->> 'parentRunId' is null or r.run_id is not null order by n.place),
        min(n.ordinal) filter (
            where l.launch ->> 'parentRunId' is not null and r.run_id is null and not v_places ? v_parents[n.place]
        )
    into v_roots, v_settled, v_ordinal
    from unnest(p_ordinals) with ordinality as n (ordinal, place)
    cross join lateral (select p_launches -> (n.ordinal - 1)::integer as launch) as l
    left join lateral (
        select h.run_id, h.root_run_id
        from counterfoil.runs as h
        where h.org_id = l.launch ->> 'orgId' and h.run_id = l.launch ->> 'parentRunId'
        limit 1
    ) as r on true;
    if v_ordinal is not null then
        v_where := counterfoil.launch_path(p_single, v_ordinal, 'parentRunId');
        perform counterfoil.raise_not_found(
            format('%s names no run of this org.', v_where), 'parent_run_not_found',
            'Launch the parent first, or in the same call.'
        );
    end if;

    v_unsettled := cardinality(array_positions(v_settled, false));
    while v_unsettled > 0 loop
        -- One generation a turn: parents in the same call hand their root down.
        select
            array_agg(coalesce(c.root, case when v_settled[p.place] then v_roots[p.place] end) order by c.place),
            array_agg(c.settled or v_settled[p.place] order by c.place)
        into v_roots, v_settled
        from unnest(v_roots, v_settled) with ordinality as c (root, settled, place)
        cross join lateral (select (v_places ->> v_parents[c.place])::integer as place) as p;

        v_left := cardinality(array_positions(v_settled, false));
        if v_left = v_unsettled then
            v_where := counterfoil.launch_path(p_single, p_ordinals[array_position(v_settled, false)], 'parentRunId');
            perform counterfoil.raise_invalid_argument(
                format('%s leads in a circle.', v_where), v_where, 'A run cannot be its own ancestor.'
            );
        end if;
        v_unsettled := v_left;
    end loop;

    return v_roots;
end
$function$;

comment on function counterfoil.launch_roots(jsonb, bigint[], boolean) is
'Root run of each of the launches with the given ordinals, in order. Private.';

revoke all on function counterfoil.launch_roots(jsonb, bigint[], boolean) from public;
