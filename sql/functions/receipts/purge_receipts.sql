-- purge_receipts: forgets step receipts that were settled long ago.
--
-- Promises: removes at most p_limit receipts settled longer than receipt_retention ago, the oldest first, and as many observations
--           made that long ago. Never a receipt that runs or waits. Answers how many of each it removed; the caller repeats
--           until both are nought. Passes over what others have locked.
-- Locks:    the rows it removes, passing over locked ones.
-- Raises:   RL001 p_limit out of range.
-- Since:    1

create or replace function counterfoil.purge_receipts(p_limit integer default 1000)
returns table (receipts bigint, observations bigint)
language plpgsql
volatile
parallel unsafe
called on null input
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $function$
declare
    v_before timestamptz := clock_timestamp() - make_interval(secs => counterfoil.setting_integer('receipt_retention'));
    v_rows tid[];
    v_receipts bigint;
    v_observations bigint;
begin
    perform counterfoil.check_limit(p_limit, 1, 100000, 'p_limit');

    -- Rows under our lock stay where they are, so their places name them.
    select array_agg(o.row_id)
    into v_rows
    from (
        select r.ctid as row_id
        from counterfoil.step_receipts as r
        where r.settled_at < v_before
        order by r.settled_at
        limit p_limit
        for update skip locked
    ) as o;
    delete from counterfoil.step_receipts as r
    where r.ctid = any(v_rows);
    get diagnostics v_receipts = row_count;

    select array_agg(d.row_id)
    into v_rows
    from (
        select o.ctid as row_id
        from counterfoil.observations as o
        where o.updated_at < v_before
        order by o.updated_at
        limit p_limit
        for update skip locked
    ) as d;
    delete from counterfoil.observations as o
    where o.ctid = any(v_rows);
    get diagnostics v_observations = row_count;

    return query select v_receipts, v_observations;
end
$function$;

comment on function counterfoil.purge_receipts(integer) is
'Removes step receipts settled, and observations made, longer than receipt_retention ago, p_limit of each at most; answers how many.';

revoke all on function counterfoil.purge_receipts(integer) from public;
