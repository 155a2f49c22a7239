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
    select p_text ~* (
        'pass[^a-z]?[wpc]|pwd|secret|token|credential|signature|[a-z][^a-z0-9]?key|authoriz|cookie|bearer|basic|-----begin|://[^/]*@'
        '|eyj|akia|asia|abia|acca|agpa|aida|aroa|anpa|aiza|ya29|gocspx|1//0|8q~|gh[pousr]_|github_pat|gl[a-z]+-|xox|xapp-|:aa|k_live'
        '|k_test|whsec_|sk-|npm_|pypi-|rubygems_|dckr_|sg\.|hf_|hv[sb]\.|do[opr]_v1|shp[acps]|sk[0-9a-f]{32}|dapi|connection|dsn'
        '|\murl|hooks\.slack|webhook|telegram|sig='
    )
$function$;

comment on function counterfoil.looks_secret(text) is
'Whether a text could hold a secret or a secret''s name; a cheap first look before redaction. Private.';

revoke all on function counterfoil.looks_secret(text) from public;
