-- hold_limits: keeps the limits as they are until the transaction ends.
--
-- Promises: whoever changes limits waits for this transaction, and its own reading of them is of what holds now. In read
--           committed it is so by itself; a transaction with an older snapshot than the last change fails here, to be repeated.
-- Locks:    admission_limits in ACCESS SHARE mode, as any reader; in other isolation levels then limits_version, for share.
-- Raises:   nothing; 40001 as above.
-- Since:    1

create or replace function counterfoil.hold_limits()
returns void
language plpgsql
volatile
parallel unsafe
called on null input
security invoker
set search_path = pg_catalog, pg_temp
as $function$
begin
    lock table counterfoil.admission_limits in access share mode;
    if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
        perform from counterfoil.limits_version as v for share;
    end if;
end
$function$;

comment on function counterfoil.hold_limits() is
'Keeps the limits of admission as they are until the transaction ends; fails (40001) where its snapshot is older than they are. Private.';

revoke all on function counterfoil.hold_limits() from public;
