-- redact_text: a text without the secrets in it.
--
-- Promises: PEM blocks, credentials in URLs, webhooks, bearer and basic credentials, JSON web tokens, keys of known
--           vendors, and values given after a secret's name (password=…, "apiKey": "…") are replaced by the marker
--           [redacted], so that one sees that something was there. All else stays. Null for null. Takes a second or two for
--           a megabyte, whatever is in it.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.redact_text(p_text text)
returns text
language plpgsql
immutable
parallel safe
strict
security invoker
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_text text := p_text;
begin
    -- Most texts hold nothing of the kind: one look instead of nine.
    if not counterfoil.looks_secret(v_text) then
        return v_text;
    end if;

    -- A block whose end was cut off is secret to the end of the text. The lazy +? makes the whole expression lazy.
    v_text := regexp_replace(v_text, '-----BEGIN [A-Z0-9 ]+?-----.*?(?:-----END [A-Z0-9 ]+-----|$)', '[redacted]', 'g');
    -- scheme://user:password@host
    v_text := regexp_replace(v_text, '([a-z][a-z0-9+.-]*://)[^/?#\s@"''<>]*:[^/?#\s"''<>]+@', '\1[redacted]@', 'gi');
    -- https://token@host: a name alone is no secret, but on the web it is nothing else.
    v_text := regexp_replace(v_text, '(https?://)(?!\[redacted\])[^/?#\s@"''<>]+@', '\1[redacted]@', 'gi');
    -- Whoever knows these paths may post there; a shared access signature opens what it signs.
    v_text := regexp_replace(
        v_text,
        '(hooks\.slack(?:-gov)?\.com/(?:services|workflows|triggers)/|discord(?:app)?\.com/api/(?:v[0-9]+/)?webhooks/'
        '|webhook\.office\.com/webhookb2/|api\.telegram\.org/(?:file/)?bot|\msig=)[^\s?#&"''<>\\]+',
        '\1[redacted]', 'gi'
    );
    -- A word that only a credential would be: it has a digit or a sign in it, or is very long.
    v_text := regexp_replace(
        v_text,
        '\m(bearer|basic)(\s+)(?=[a-z0-9._~+/=-]*[0-9_~+/=]|[a-z.-]{24})[a-z0-9._~+/=-]{6,}', '\1\2[redacted]', 'gi'
    );
    v_text := regexp_replace(v_text, '\meyJ[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]{4,}(?:\.[A-Za-z0-9_-]*){0,3}', '[redacted]', 'g');
    v_text := regexp_replace(
        v_text,
        '\m(?:(?:AKIA|ASIA|ABIA|ACCA|AGPA|AIDA|AROA|ANPA)[0-9A-Z]{16}\M|AIza[0-9A-Za-z_-]{35}|ya29\.[0-9A-Za-z_-]{20,}'
        '|GOCSPX-[0-9A-Za-z_-]{20,}|1//0[0-9A-Za-z_-]{30,}'
        '|gh[pousr]_[0-9A-Za-z]{30,}|github_pat_[0-9A-Za-z_]{22,}|gl(?:pat|dt|rt|cbt|ptt|ft|imt|oas|soat)-[0-9A-Za-z_-]{20,}'
        '|xox[abeprs]-[0-9A-Za-z.-]{10,}|xoxe\.xox[bp]-[0-9A-Za-z-]{10,}|xapp-[0-9]-[0-9A-Za-z-]{10,}'
        '|[prs]k_(?:live|test)_[0-9A-Za-z]{16,}|whsec_[0-9A-Za-z+/=]{24,}|npm_[0-9A-Za-z]{36}|pypi-[0-9A-Za-z_-]{40,}'
        '|rubygems_[0-9a-f]{48}|dckr_pat_[0-9A-Za-z_-]{20,}'
        '|SG\.[0-9A-Za-z_-]{16,}\.[0-9A-Za-z_-]{16,}|hf_[0-9A-Za-z]{30,}|hv[sb]\.[0-9A-Za-z_-]{20,}|do[opr]_v1_[0-9a-f]{64}'
        '|shp(?:at|ca|pa|ss)_[0-9a-f]{32}|SK[0-9a-f]{32}\M|AGE-SECRET-KEY-1[0-9A-Z]{50,}|dapi[0-9a-f]{32})',
        '[redacted]', 'g'
    );
    -- These have no beginning of their own, or words share it: apart from the others, which are found by their first letters.
    v_text := regexp_replace(v_text, '\msk-(?:[0-9A-Za-z_-]{40,}|[a-z_-]{0,19}[0-9A-Z][0-9A-Za-z_-]{19,})', '[redacted]', 'g');
    v_text := regexp_replace(v_text, '\m[0-9]{8,10}:AA[0-9A-Za-z_-]{33}', '[redacted]', 'g');
    v_text := regexp_replace(v_text, '[0-9A-Za-z_~.]{3}8Q~[0-9A-Za-z_~.-]{31,}', '[redacted]', 'g');
    -- name = value and "name": "value"; a quoted value goes up to its quote, a header to the end of its line.
    v_text := regexp_replace(
        v_text,
        '((?:\m|_)(?:proxy-)?(?:authorization|set-cookie|cookie)(?:\\?["''])?\s*[:=]\s*)(?!\[redacted\])'
        '(?:\\?"[^"]*"|''[^'']*''|[^\r\n"'']+)',
        '\1[redacted]', 'gi'
    );
    v_text := regexp_replace(
        v_text,
        '((?:pass(?:word|wd|phrase|code)|pwd|secret|token|credentials?|signature'
        '|(?:api|access|private|account|signing|encryption|shared|session|master|auth)[_ -]?key)'
        '(?:[_-]?(?:id|value|hash))?(?:\\?["''])?\s*(?:=>|[:=])\s*)(?!\[redacted\])'
        '(?:\\?"(?:[^"\\]|\\[^"])*\\?"|''[^'']*''|[^\s,;&"''<>()\[\]{}]+)',
        '\1[redacted]', 'gi'
    );

    return v_text;
end
$function$;

comment on function counterfoil.redact_text(text) is
'The text with every secret in it replaced by [redacted]: PEM blocks, URL passwords, bearer and basic credentials, JWTs, vendor keys, values after a secret''s name. Private.';

revoke all on function counterfoil.redact_text(text) from public;
