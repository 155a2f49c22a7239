-- harmless_token_words: what stands before "token" where that is no secret.
--
-- Promises: words as one regular expression, for is_secret_name and redact_text: nextPageToken, cursor_token, startToken and
--           their kind. start and end only where they begin the name.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.harmless_token_words()
returns text
language sql
immutable
parallel safe
called on null input
security invoker
as $function$
    select '(?:page|continuation|cursor|sync|next|resume|marker|pagination|cancellation|\mstart|\mend)'
$function$;

comment on function counterfoil.harmless_token_words() is
'Regular expression of the words before "token" that make it no secret, such as page or cursor. Private.';

revoke all on function counterfoil.harmless_token_words() from public;
