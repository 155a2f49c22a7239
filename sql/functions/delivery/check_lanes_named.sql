-- check_lanes_named: refuses arrays that do not name lanes and positions.
--
-- Promises: returns only for arrays of one length, up to claim_batch_max, without nulls, that name no run twice.
-- Locks:    nothing.
-- Raises:   RL001 with the argument as DETAIL.
-- Since:    1

create or replace function counterfoil.check_lanes_named(p_org_ids text[], p_run_ids text[], p_through_seqs bigint[])
returns void
language plpgsql
volatile
parallel unsafe
called on null input
security invoker
set search_path = pg_catalog, pg_temp
as $function$
begin
    if greatest(array_ndims(p_org_ids), array_ndims(p_run_ids), array_ndims(p_through_seqs)) > 1 then
        perform counterfoil.raise_invalid_argument(
            'An array is no plain list.',
            case
                when array_ndims(p_org_ids) > 1 then 'p_org_ids' when array_ndims(p_run_ids) > 1 then 'p_run_ids' else 'p_through_seqs'
            end,
            'Give arrays of one dimension.'
        );
    end if;
    perform counterfoil.check_limit(
        coalesce(cardinality(p_org_ids), 0), 1, counterfoil.setting_integer('claim_batch_max'), 'p_org_ids'
    );
    if
        coalesce(cardinality(p_run_ids), 0) <> cardinality(p_org_ids)
        or coalesce(cardinality(p_through_seqs), 0) <> cardinality(p_org_ids)
    then
        perform counterfoil.raise_invalid_argument(
            'p_org_ids, p_run_ids and p_through_seqs differ in length.',
            case when cardinality(p_run_ids) = cardinality(p_org_ids) then 'p_through_seqs' else 'p_run_ids' end,
            'Give one org, one run and one position for each lane.'
        );
    elsif
        array_position(p_org_ids, null) is not null or array_position(p_run_ids, null) is not null
        or array_position(p_through_seqs, null) is not null
    then
        perform counterfoil.raise_invalid_argument(
            'An array holds a null.',
            case
                when array_position(p_org_ids, null) is not null then 'p_org_ids'
                when array_position(p_run_ids, null) is not null then 'p_run_ids'
                else 'p_through_seqs'
            end,
            'Give one org, one run and one position for each lane.'
        );
    elsif cardinality(p_org_ids) > 1 and (
        select count(distinct (g.org_id, g.run_id)) from unnest(p_org_ids, p_run_ids) as g (org_id, run_id)
    ) < cardinality(p_org_ids) then
        perform counterfoil.raise_invalid_argument('A run is named twice.', 'p_run_ids', 'Give each run once.');
    end if;
end
$function$;

comment on function counterfoil.check_lanes_named(text[], text[], bigint[]) is
'Refuses misaligned, empty or too long arrays of orgs, runs and positions, nulls in them, or a run twice (RL001). Private.';

revoke all on function counterfoil.check_lanes_named(text[], text[], bigint[]) from public;
