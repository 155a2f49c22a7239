-- looks_secret: whether a text could hold a secret.
--
-- Promises: true for every text in which redact_text would find something, for every name that is_secret_name knows with
--           no more than a sign between its words, and for some others; a cheap first look.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.looks_secret(p_text text)
returns boolean
language sql
immutable
parallel safe
strict
security invoker
as $function$
    -- A key of a vendor is a long word, longer than a UUID where it has hyphens; the shorter ones with hyphens are named here.
    -- Where there is none, the many ways that such keys begin are not looked for.
    select p_text ~* (
        'pass(?:[^a-z]?[wpc]|\M)|auth(?:\\?["''])?\s*[:=]|pwd|secret|token|credential|signature'
        '|[a-z][^a-z0-9]?key|authoriz|cookie|bearer|basic|----[ -]begin|://[^/]*@'
        '|(?:sql|ostgres|db|srv|rediss?|amqps?)://[^\s]*@|@(?:tcp|udp|unix)\(|jdbc:oracle'
        '|eyj|8q~|:aa|-us[0-9]|nral|atlasv1|connection[^a-z]?string|dsn|hooks\.slack|webhook|api\.telegram|sig='
        '|identified|sshpass|mysql|mariadb|curl|gl[a-z]+-|gocspx|dckr|xox|xapp-|[?&]key=|:(?:[0-9]{2,5}|\*):[^\s:]+:[^\s:]+:'
        '|\.[0-9a-z_-]{6}\.[0-9a-z_-]{27}|azdo|[a-z2-7]{52}'
    )
    or p_text ~ '[0-9A-Za-z_+/=]{15}|[0-9A-Za-z_+/=-]{37}' and p_text ~ counterfoil.vendor_key_pattern()
$function$;

comment on function counterfoil.looks_secret(text) is
'Whether a text could hold a secret or a secret''s name; a cheap first look before redaction. Private.';

revoke all on function counterfoil.looks_secret(text) from public;
