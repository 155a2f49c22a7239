-- lock_receipts: locks the receipts that a caller wants to write and says how it stands to each.
--
-- Promises: one word per write, in the order given: held (the caller's live lease), lapsed (its lease, past its time),
--           queued (its place), released, settled (under its lease), other (somebody else's), absent. With p_allowed, any
--           other word raises.
-- Locks:    the receipts' rows, in the order of their keys.
-- Raises:   RL002 receipt_not_found; RL004 receipt_lease_not_current.
-- Since:    1

create or replace function counterfoil.lock_receipts(
    p_org_id text,
    p_run_id text,
    p_keys text[],
    p_lease_ids text[],
    p_attempts integer[],
    p_allowed text[]
)
returns text[]
language plpgsql
volatile
parallel unsafe
called on null input
security invoker
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_now timestamptz;
    v_standings text[];
    v_index bigint;
    v_word text;
begin
    -- How look-ups are planned is up to the callers, whose settings hold here too.
    perform
    from (
        select distinct g.key
        from unnest(p_keys) as g (key)
        order by g.key
    ) as w
    cross join lateral (
        select
        from counterfoil.step_receipts as r
        where r.org_id = p_org_id and r.key = w.key
        limit 1
        for no key update
    ) as k;

    v_now := clock_timestamp();
    select array_agg(case
        when r.key is null then 'absent'
        when
            r.run_id <> p_run_id or r.run_attempt is distinct from w.attempt
            or case
                when w.lease_id is null then r.lease_aware
                else w.lease_id is distinct from coalesce(r.lease_id, r.settled_lease_id)
            end
            then 'other'
        when r.status = 'running' then case when r.lease_expires_at > v_now then 'held' else 'lapsed' end
        when r.status = 'queued' then case when r.lease_id is null then 'released' else 'queued' end
        when r.settled_lease_id is null then 'other'
        else 'settled'
    end order by w.ordinality)
    into v_standings
    from unnest(p_keys, p_lease_ids, p_attempts) with ordinality as w (key, lease_id, attempt, ordinality)
    left join lateral (
        select
            e.key, e.status, e.run_id, e.run_attempt, e.lease_aware, e.lease_id, e.settled_lease_id, e.lease_expires_at
        from counterfoil.step_receipts as e
        where e.org_id = p_org_id and e.key = w.key
        limit 1
    ) as r on true;

    if p_allowed is not null and not v_standings <@ p_allowed then
        select s.ordinality - 1, s.word
        into v_index, v_word
        from unnest(v_standings) with ordinality as s (word, ordinality)
        where s.word <> all(p_allowed)
        order by s.ordinality
        limit 1;
        if v_word = 'absent' then
            perform counterfoil.raise_not_found(
                format('p_receipts[%s]: there is no receipt of this key.', v_index), 'receipt_not_found',
                'Claim the receipt first.'
            );
        end if;
        perform counterfoil.raise_lease_lost(
            format('p_receipts[%s]: the caller does not hold this receipt (%s).', v_index, case v_word
                when 'other' then 'it was claimed by somebody else, or under another lease'
                when 'lapsed' then 'its lease has lapsed'
                when 'settled' then 'it is settled already'
                else 'it was given back'
            end),
            'receipt_lease_not_current', 'Claim the receipt again; what was computed under the old lease is void.'
        );
    end if;

    return v_standings;
end
$function$;

comment on function counterfoil.lock_receipts(text, text, text[], text[], integer[], text[]) is
'Locks receipts in key order and answers how run, attempt and lease stand to each: held, lapsed, queued, released, settled, other, absent. Raises for words not in p_allowed, if given. Private.';

revoke all on function counterfoil.lock_receipts(text, text, text[], text[], integer[], text[]) from public;
