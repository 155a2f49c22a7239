-- vendor_key_pattern: what keys look like that say at their beginning whose they are.
--
-- Promises: one regular expression for all of them, with regard to case; with p_part only for those of one part, counted from
--           1, null past the last. What it matches begins a word and holds 15 letters, digits and signs of base64 in a
--           row. Keys of one shape share it: what each of them allows less is not worth the states, for every look at a
--           text pays for those. Each match costs states times letters, so that in a text full of keys all parts one after
--           the other take a fraction of the whole's time, and in any other text a multiple.
-- Locks:    nothing.
-- Raises:   nothing.
-- Since:    1

create or replace function counterfoil.vendor_key_pattern(p_part integer default null)
returns text
language sql
immutable
parallel safe
called on null input
security invoker
as $function$
    select '\m(?:' || string_agg(u.part, '|' order by u.ordinality) || ')'
    from unnest(array[
        -- Letters and digits. GitHub, Bitbucket; Groq, xAI, Perplexity, Replicate, Hugging Face; npm, RubyGems.
        '(?:gh[pousr]_|ATBB|gsk_|xai-|pplx-|r8_|hf_)[0-9A-Za-z]{30,}',
        '(?:api_org_|npm_|rubygems_|napi_|sbp_|dapi|do[opr]_v1_|tvly-(?:dev-|prod-)?|nfp_|pnu_|phx_)[0-9A-Za-z]{30,}',
        -- (Neon, Supabase, Databricks, DigitalOcean, Tavily, Netlify, Prefect, PostHog, too;) Pulumi, age;
        -- Buildkite, Linear, Notion, Shopify.
        '(?:pul-|AGE-SECRET-KEY-1|bkua_|lin_(?:api|oauth)_|ntn_|secret_|shp(?:at|ca|pa|ss)_)[0-9A-Za-z]{30,}',
        -- Longer ones, since more begins like that: OpenAI, Anthropic and their kind, PyPI, Nvidia; Facebook, Square, Dropbox, JFrog,
        -- Pinecone.
        '(?:sk-|pypi-|nvapi-)[0-9A-Za-z_-]{40,}',
        'sk-[a-z_-]{0,19}[0-9A-Z][0-9A-Za-z_-]{19,}',
        '(?:EAA|sl\.(?:u\.)?|AKCp|pcsk_)[0-9A-Za-z_-]{60,}',
        -- Signs as well. GitHub, GitLab, Grafana, Atlassian; Docker, CircleCI, Sentry, New Relic, Postman.
        '(?:github_pat_|gl(?:(?:pat|dt|rt|cbt|ptt|ft|imt|oas|soat|agent)-|c_|sa_)|ATATT3|dckr_[op]at_|CCIPAT_)[0-9A-Za-z_+/=-]{20,}',
        '(?:sntry[su]_|NRAK-|PMAK-|AIza|ya29\.|GOCSPX-|1//0|ABSK|hv[sb]\.)[0-9A-Za-z_+/=-]{20,}',
        -- (Google, Bedrock, Vault, too;) Contentful, Together, 1Password, SonarQube;
        -- Doppler, Heroku, Fly, Vercel, Tailscale, Supabase, PlanetScale.
        '(?:dp\.(?:pt|st|ct|sa|scim|audit)\.|CFPAT-|tgp_v1_|ops_eyJ|sq[apu]_|HRKU-|fm(?:1[ar]|2)_|vercel_blob_rw_|tskey-'
        '|sb_secret_)[0-9A-Za-z_+/=-]{20,}',
        -- Stripe's hooks, Square; Brevo, Figma, LangSmith, Okta.
        '(?:pscale_(?:tkn|pw|oauth)_|whsec_|sq0(?:csp|atp)-|xkeysib-|figd_|lsv2_(?:pt|sk)_|SSWS 00)[0-9A-Za-z_+/=-]{20,}',
        -- Of a shape of their own: Amazon, Twilio, Stripe, Slack.
        '(?:AKIA|ASIA|ABIA|ACCA|AGPA|AIDA|AROA|ANPA)[0-9A-Z]{16}\M',
        'SK[0-9a-f]{32}\M|[prs]k_(?:live|test)_[0-9A-Za-z]{16,}',
        'xox[abeprs]-[0-9A-Za-z.-]{10,}|xoxe\.xox[bp]-[0-9A-Za-z-]{10,}|xapp-[0-9]-[0-9A-Za-z-]{10,}',
        -- SendGrid, Resend, HubSpot, Airtable, PayPal, Cloudflare; Mailgun, ngrok.
        'SG\.[0-9A-Za-z_-]{16,}\.[0-9A-Za-z_-]{16,}|re_[0-9A-Za-z]{8}_[0-9A-Za-z]{20,}',
        'pat-[a-z]{2,3}[0-9]-[0-9a-f]{8}-[0-9a-f-]{20,}|pat[0-9A-Za-z]{14}\.[0-9a-f]{20,}',
        'access_token\$[a-z]+\$[0-9a-z]{16}\$[0-9a-f]{20,}|v1\.0-[0-9a-f]{24}-[0-9a-f]{20,}',
        'key-[0-9a-f]{32}\M|[12][0-9A-Za-z]{26}_[0-9A-Za-z]{19,22}\M'
    ]) with ordinality as u (part, ordinality)
    where coalesce(u.ordinality = p_part, true)
$function$;

comment on function counterfoil.vendor_key_pattern(integer) is
'Regular expression of the keys that say at their beginning whose they are, such as those of Amazon, GitHub or OpenAI. Private.';

revoke all on function counterfoil.vendor_key_pattern(integer) from public;
