-- end_retention: notes how far a batch of retention came.
--
-- Promises: true when there may be more: orgs that were not looked at, or one of this round that had more than its share.
--           The next call goes on behind p_looked_to, or from the first org where that is empty.
-- Locks:    the row of the kind's turn, passing over it when another call has it.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.end_retention(p_kind text, p_looked_to text, p_unfinished boolean)
returns boolean
language plpgsql
volatile
parallel unsafe
called on null input
security invoker
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_turn record;
    v_unfinished boolean;
begin
    select t.after_org_id, t.unfinished into v_turn
    from counterfoil.retention_turns as t
    where t.kind = p_kind
    for update skip locked;
    v_unfinished := p_unfinished or coalesce(v_turn.unfinished, false);

    if v_turn.after_org_id <> p_looked_to or v_turn.unfinished <> (p_looked_to <> '' and v_unfinished) then
        update counterfoil.retention_turns as t
        set after_org_id = p_looked_to, unfinished = p_looked_to <> '' and v_unfinished
        where t.kind = p_kind;
    end if;
    return v_unfinished or p_looked_to <> '';
end
$function$;

comment on function counterfoil.end_retention(text, text, boolean) is
'Notes how far a batch of retention of a kind came, and answers whether there may be more. Private.';

revoke all on function counterfoil.end_retention(text, text, boolean) from public;
