-- is_secret_name: whether the value under a JSON key is a secret by its name.
--
-- Promises: true for password, apiKey, client_secret, Authorization and their kind in any spelling; false for names that
--           only sound like them, such as tokens, maxTokens or nextPageToken.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.is_secret_name(p_name text)
returns boolean
language sql
immutable
parallel safe
strict
security invoker
as $function$
    -- Compared without case, underscores, hyphens, dots and blanks.
    select regexp_replace(lower(p_name), '[^a-z0-9]', '', 'g')
        ~ ('((password|passwd|pwd)s?(hash|old|new|repeat|confirm(ation)?|[0-9]+)?|passphrases?|passcodes?'
            '|secrets?|credentials?|authorization|cookies?|connectionstring|dsn|token'
            '|(api|access|private|account|signing|encryption|shared|session|master|auth|secret|unwrap|subscription|consumer|hmac|functions'
            '|servicerole)keys?|(db|sql|pg|postgres|redis|mongo|ftp|smtp|mail|user|admin|root|proxy|login|ldap)pass'
            '|privatekeypem|secretkeybase|accesskeyid|(secret|token)value)$')
        and regexp_replace(lower(p_name), '[^a-z0-9]', '', 'g')
        !~ (counterfoil.harmless_token_words() || 'token$')
$function$;

comment on function counterfoil.is_secret_name(text) is
'Whether a JSON key names a secret (password, apiKey, clientSecret, authorization, …) in any spelling. Private.';

revoke all on function counterfoil.is_secret_name(text) from public;
