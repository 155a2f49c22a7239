-- redact_text: a text without the secrets in it.
--
-- Promises: PEM blocks, credentials in URLs, webhooks, bearer and basic credentials, JSON web tokens, keys of known
--           vendors, lines of netrc and pgpass, and values given after a secret's name (password=…, "apiKey": "…",
--           <token>…, --password …, in SQL, in a sentence) are replaced by the marker [redacted], so that one sees that
--           something was there. All else stays. Null for null. The time is linear in the text's length: milliseconds for
--           a megabyte without secrets, some seconds for one that is nothing but secrets.
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
    -- What stands where a secret would, and is none; it must be all that stands there.
    v_plain text := '(?!(?:true|false|null|none|nil|undefined|required|optional|missing|valid|invalid|expired|empty|unknown|command)'
        '(?:[\s,;&"''<>()\[\]{}]|$))';
    v_name text := '(?:pass(?:word|wd|phrase|code)|secret(?:[_ -]?key(?:[_-]?base)?)?|token|credentials?|signature'
        '|(?:api|access|private|account|signing|encryption|shared|session|master|auth|subscription|consumer|hmac|functions'
        '|service[_-]?role)[_ -]?key|(?:db|sql|pg|postgres|redis|mongo|ftp|smtp|mail|user|admin|root|proxy|login|ldap)[_-]?pass)';
    -- In quotes, of Python's and the shell's kinds too, or a word. Of these the longest is taken: a quote after a backslash
    -- ends the value only where no other does.
    v_quoted text := '[brufe$]{0,2}(?:"(?:[^"\\]|\\.)*"|"[^"]*"|\\"(?:[^"\\]|\\[^"])*\\?"|''(?:[^''\\]|\\.)*''|''[^'']*'')';
    v_value text := '(?:' || v_quoted || '|[|>][+-]?[ \t]*\r?\n[ \t]+[^\s]+|[^\s,;&"''<>()\[\]{}]+)';
    v_is_masked boolean := false;
    v_part integer := 0;
    v_keys text;
begin
    -- Most texts hold nothing of the kind: one look instead of many.
    if not counterfoil.looks_secret(v_text) then
        return v_text;
    end if;

    -- Blocks. One whose end was cut off is secret to the end of the text. The lazy +? makes the whole expression lazy.
    v_text := regexp_replace(
        v_text, '----[ -]BEGIN [A-Z0-9 ]+?----.*?(?:-----END [A-Z0-9 ]+-----|---- END [A-Z0-9 ]+ ----|$)', '[redacted]', 'g'
    );

    -- URLs: scheme://user:password@host
    v_text := regexp_replace(v_text, '([a-z][a-z0-9+.-]*://)[^/?#\s@"''<>]*:[^/?#\s"''<>]+@', '\1[redacted]@', 'gi');
    -- A password may hold what a URL may not; a port is none.
    v_text := regexp_replace(
        v_text,
        '((?:postgres(?:ql)?|mysql|mariadb|mongodb(?:\+srv)?|rediss?|amqps?)://)(?!\[redacted\])[^/?#\s@:"''<>]*:(?![0-9]{1,5}[/?,])'
        '[^\s@"''<>]+@',
        '\1[redacted]@', 'gi'
    );
    -- Go's user:password@tcp(host), and Oracle's user/password@host.
    v_text := regexp_replace(v_text, '(\m[0-9a-z_.-]+:)[^\s"''@]+(@(?:tcp|udp|unix)\()', '\1[redacted]\2', 'gi');
    v_text := regexp_replace(v_text, '(jdbc:oracle:[0-9a-z]+:[^/\s"''@]+/)[^\s"''@]+@', '\1[redacted]@', 'gi');
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
        '(\m(?:bearer(?:\s+|(?:\\?["''])?\s*[:=]\s*(?:\\?["''])?)|basic\s+))'
        '(?=[a-z0-9._~+/=-]*[0-9_~+/=]|[a-z.-]{24})[a-z0-9._~+/=-]{6,}',
        '\1[redacted]', 'gi'
    );

    -- JSON web tokens, signed or encrypted (these may have nothing between the first two dots).
    v_text := regexp_replace(v_text, '\meyJ[A-Za-z0-9_-]{4,}\.\.?[A-Za-z0-9_-]{4,}(?:\.[A-Za-z0-9_-]*){0,3}', '[redacted]', 'g');

    -- Keys of vendors: by their beginnings, or else by a sign in the middle or at the end (Telegram, Mailchimp, New Relic,
    -- Terraform, Discord, Azure DevOps now and before, Entra).
    if v_text ~ '[0-9A-Za-z_+/=-]{15}' then
        -- Is there a hundredth one? Then part by part.
        v_keys := counterfoil.vendor_key_pattern();
        if length(v_text) > 10000 and regexp_replace(v_text, v_keys, '', 1, 100) <> v_text then
            loop
                v_part := v_part + 1;
                v_keys := counterfoil.vendor_key_pattern(v_part);
                exit when v_keys is null;
                v_text := regexp_replace(v_text, v_keys, '[redacted]', 'g');
            end loop;
        else
            v_text := regexp_replace(v_text, v_keys, '[redacted]', 'g');
        end if;
        v_text := regexp_replace(
            v_text,
            '\m(?:[0-9]{8,10}:AA[0-9A-Za-z_-]{33}|[0-9a-f]{32}-us[0-9]{1,2}\M|[0-9a-f]{36}NRAL\M'
            '|[0-9A-Za-z]{14}\.atlasv1\.[0-9A-Za-z]{30,}|[MNO][0-9A-Za-z_-]{23,27}\.[0-9A-Za-z_-]{6}\.[0-9A-Za-z_-]{27,38}'
            '|[0-9A-Za-z]{76}AZDO[0-9A-Za-z]{4}\M|(?=[a-z]*[2-7])[a-z2-7]{52}\M)',
            '[redacted]', 'g'
        );
        v_text := regexp_replace(v_text, '[0-9A-Za-z_~.]{3}8Q~[0-9A-Za-z_~.-]{31,}', '[redacted]', 'g');
    end if;

    -- Names that only sound like one, as in nextPageToken or "unexpected token: x": broken up by a sign until the end.
    if strpos(v_text, chr(1)) = 0 then
        v_text := regexp_replace(
            v_text,
            '((?:expected|function|method)\s+|' || counterfoil.harmless_token_words() || '[_ -]?)(t|s)(oken|ignature)',
            '\1\2' || chr(1) || '\3', 'gi'
        );
        -- HTML's shortcut, accesskey="n".
        v_text := regexp_replace(
            v_text, '(\maccess)(key\s*=\s*(?:\\?"[^"\\]\\?"|''[^'']''))', '\1' || chr(1) || '\2', 'gi'
        );
        v_is_masked := true;
    end if;

    -- Headers: Authorization: … to the end of the line, or of the quotation that it stands in.
    v_text := regexp_replace(
        v_text,
        '((?:\m|_)(?:proxy-)?(?:authorization|set-cookie|cookie)(?:\\?["''])?\s*[:=]\s*)(?!\s|\[redacted\])' || v_plain
        || '(?:\\?"[^"]*"|''[^'']*''|(?:=\\?"[^"\\]*\\?"|[^\r\n"''])+)',
        '\1[redacted]', 'gi'
    );
    -- In a connection string a value goes up to the next semicolon, or stands in braces.
    v_text := regexp_replace(
        v_text, '(;\s*(?:password|pwd)\s*=\s*)(?!\[redacted\])' || v_plain || '(?:\{[^}\r\n]*\}|[^;"''{}\r\n]+(?=;))', '\1[redacted]', 'gi'
    );
    -- name = value and "name": "value"; a quoted value goes up to its quote. A shell's folder, PWD=/home, is no secret, nor are
    -- counts of what passed.
    v_text := regexp_replace(
        v_text,
        '((?:' || v_name || '(?:[_-]?(?:id|value|hash))?|[;&?,_]pwd|pwd(?!=/))(?:\\?["''])?\s*(?:=>|[:=]={0,2}|%3[ad](?:%20)?)\s*'
        '|\mpass(?:=(?![0-9./%]+(?![0-9a-z./%]))|(?:\\?["''])?\s*:\s*(?=\\?["''])))'
        '(?!\[redacted\])(?!\\?["'']?(?:yes|no|ok|all)\M)' || v_plain || v_value,
        '\1[redacted]', 'gi'
    );
    -- The name and the value side by side: {"name": "DB_PASSWORD", "value": "…"}, <add key="password" value="…"/>, and below
    -- each other.
    v_text := regexp_replace(
        v_text,
        '(\m(?:name|key)(?:\\?["''])?\s*[:=]\s*(?:\\?["''])?[0-9a-z_./-]*(?:' || v_name || '|_pwd)(?:\\?["''])?[\s,]+(?:\\?["''])?'
        'value(?:\\?["''])?\s*[:=]\s*)(?!\[redacted\])' || v_plain || v_value,
        '\1[redacted]', 'gi'
    );
    -- A sentence: "the password is …", in quotes or with a letter and a digit; but not "is base64-encoded".
    v_text := regexp_replace(
        v_text,
        '(\m(?:' || v_name || '|pwd)\s+(?:is|was)(?:\s+now)?:?\s+)(?!\[redacted\])'
        '(?!["''`]?(?:true|false|null|none|expired|invalid|valid|missing|empty'
        '|required|wrong|base64|sha-?[0-9]+|md5|utf-?8|bcrypt|oauth|hs256|rs256)(?![0-9a-z]))'
        '(?:"[^"\s]+"|''[^''\s]+''|`[^`\s]+`|(?=[^\s0-9]*[0-9])(?=[^\sa-z]*[a-z])[^\s,;"''`()<>]{6,})',
        '\1[redacted]', 'gi'
    );
    -- ?key=… and SOME_KEY=…, of a look that no name has: capital and small letters and digits, or 24 small letters and digits;
    -- auth=…, as in .npmrc and docker's config.json.
    v_text := regexp_replace(
        v_text,
        '([?&]key=|[A-Z]_KEY(?:\\?["''])?\s*[:=]\s*(?:\\?["''])?|(?:\m|_)auth(?:\\?["''])?\s*[:=]\s*(?:\\?["''])?)'
        '(?:(?=[A-Z_+/-]*[0-9a-z])(?=[0-9a-z_+/-]*[A-Z])(?=[A-Za-z_+/-]*[0-9])[0-9A-Za-z_+/-]{16,}={0,2}'
        '|(?=[a-z]*[0-9])(?=[0-9]*[a-z])[0-9a-z]{24,})',
        '\1[redacted]', 'g'
    );
    -- netrc, on one line or on several, and lines of pgpass: host:port:database:user:password.
    v_text := regexp_replace(
        v_text,
        '(\m(?:machine\s+[^\s]+|default)\s+login\s+[^\s]+\s+(?:account\s+[^\s]+\s+)?password\s+)(?!\[redacted\])[^\s]+',
        '\1[redacted]', 'g'
    );
    v_text := regexp_replace(
        v_text,
        '((?:^|[\r\n])[ \t]*[0-9a-z_-]*[.*/g-z][0-9a-z.*/_-]*:(?:[0-9]{2,5}|\*):[^\s:]+:[^\s:]+:)(?!\[redacted\])'
        '[^\s]+(?=[ \t\r]*(?:\n|$))',
        '\1[redacted]', 'gi'
    );
    -- Markup, arguments of programs, SQL: where there is a sign of them.
    if v_text ~* '<|-pass|--[a-z]|authtoken|sshpass|mysql|mariadb|curl|identified|password\s+(?:e?''|for)' then
        -- <password>value</password>, <entry key="password">value</entry>, <input type="password" value="…">
        v_text := regexp_replace(
            v_text,
            '(<[a-z0-9_:.-]*' || v_name || '>|<[a-z]+\s+(?:name|key)\s*=\s*["''][0-9a-z_.-]*' || v_name || '["'']\s*>)'
            '(?!\[redacted\])[^<]+',
            '\1[redacted]', 'gi'
        );
        v_text := regexp_replace(
            v_text,
            '(<input\s[^<>]*type\s*=\s*["'']?password\M[^<>]*\svalue\s*=\s*)(?!\[redacted\])(?:"[^"]*"|''[^'']*'')',
            '\1[redacted]', 'gi'
        );
        -- --password value, as a program's argument; what only goes on in prose is none.
        v_text := regexp_replace(
            v_text,
            '(--(?:[a-z]+-)*(?:password|passphrase|secret|token|(?:api|access|private|secret)-key)(?:\s+|\\?["''],\s*))'
            '(?!\[redacted\]|\\?["'']?-)'
            '(?!(?:is|are|was|or|and|to|for|from|with|must|can|may|not|no|has'
            '|options?|flags?|arguments?|parameters?|the|an?|in|on|of|if|required|missing)\M)'
            '(?:\\?"[^"]*"|''[^'']*''|[^\s"'']+)',
            '\1[redacted]', 'gi'
        );
        v_text := regexp_replace(v_text, '(-pass(?:in|out)?\s+pass:)(?!\[redacted\])[^\s"'']+', '\1[redacted]', 'gi');
        v_text := regexp_replace(v_text, '(\mauthtoken\s+)[0-9A-Za-z_]{20,}', '\1[redacted]', 'g');
        -- sshpass -p value, mysql -pvalue, curl -u name:value: other programs mean other things by -p. The last two are lazy, up
        -- to the first of these arguments, and apart from each other, since a choice between expressions never is.
        v_text := regexp_replace(v_text, '(sshpass\s+-p\s*)(?!\s|\[redacted\])(?:"[^"]*"|''[^'']*''|[^\s]+)', '\1[redacted]', 'g');
        v_text := regexp_replace(
            v_text, '(\m(?:mysql|mariadb){1,1}?[a-z_-]*?[ \t](?:[^\s|;&]*[ \t]){0,12}?-p)["''][^"'']+?["'']', '\1[redacted]', 'g'
        );
        v_text := regexp_replace(
            v_text,
            '(\mcurl[ \t](?:[^\s|;&]*[ \t]){0,12}?(?:-[uU]|--(?:proxy-)?user)[ =]?["''][^\s:"'']+?:)(?!\[redacted\])[^"'']+?(?=["''])',
            '\1[redacted]', 'g'
        );
        v_text := regexp_replace(
            v_text,
            '(\m(?:mysql|mariadb){1,1}?[a-z_-]*?[ \t](?:[^\s|;&]*[ \t]){0,12}?-p)(?!\[redacted\])[^\s]+?(?=\s|$)',
            '\1[redacted]', 'g'
        );
        v_text := regexp_replace(
            v_text,
            '(\mcurl[ \t](?:[^\s|;&]*[ \t]){0,12}?(?:-[uU]|--(?:proxy-)?user)[ =]?[^\s:]+?:)(?!\[redacted\])[^\s]+?(?=\s|$)',
            '\1[redacted]', 'g'
        );
        -- SQL: password 'value', password for name = 'value', identified by 'value'; Oracle's needs no quotes.
        v_text := regexp_replace(
            v_text, '((?:create|alter)\s+user\s+[^\s]+\s+identified\s+by\s+)(?!\[redacted\])[^\s;"'']+', '\1[redacted]', 'gi'
        );
        v_text := regexp_replace(
            v_text,
            '((?:password(?:\s+for\s+[^\s=]+\s*=)?|identified(?:\s+with\s+["'']?\w+["'']?)?\s+by)\s+e?)(?:''(?:[^'']|'''')*''|"[^"]+")',
            '\1[redacted]', 'gi'
        );
    end if;

    return case when v_is_masked then replace(v_text, chr(1), '') else v_text end;
end
$function$;

comment on function counterfoil.redact_text(text) is
'The text with every secret in it replaced by [redacted]: PEM blocks, URL passwords, bearer and basic credentials, JWTs, vendor keys, values after a secret''s name. Private.';

revoke all on function counterfoil.redact_text(text) from public;
