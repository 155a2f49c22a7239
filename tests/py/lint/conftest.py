"""A small SQL tree that keeps every house rule, for tests to break one at a time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

FUNCTION = """\
-- shout: what it does.
--
-- Promises: something. Locks: nothing.
-- Raises:   RL001.
-- Since:    1

create or replace function counterfoil.shout(p_word text, p_times integer default 1)
returns table (said text)
language plpgsql
volatile
parallel unsafe
called on null input
security definer
set search_path = pg_catalog, pg_temp
as $function$
declare
    v_found counterfoil.words%rowtype;
    v_now timestamptz;
    v_all counterfoil.words[];
begin
    v_now := clock_timestamp();
    select w.* into v_found from counterfoil.words as w where w.word = p_word for update of w;
    with loud as (
        select upper(x.word) as word from counterfoil.words as x
    )
    update counterfoil.words as w set said_at = v_now from loud as l where l.word = w.word;
    insert into counterfoil.words as w (word) values (p_word) on conflict (word) do nothing;
    if v_found.word is null then
        perform counterfoil.raise_invalid_argument('m', 'p_word', 'h');
    end if;
    return query
    select repeat(w.word, p_times) as said from counterfoil.words as w order by said;
end
$function$;

comment on function counterfoil.shout(text, integer) is 'Says it.';

revoke all on function counterfoil.shout(text, integer) from public;
"""

HELPER = """\
-- raise_invalid_argument: raises RL001.
--
-- Promises: never returns. Locks: nothing.
-- Raises:   RL001.
-- Since:    1

create or replace function counterfoil.raise_invalid_argument(
    p_message text, p_where text, p_hint text
)
returns void
language plpgsql
immutable
parallel safe
called on null input
security invoker
set search_path = pg_catalog, pg_temp
as $function$
begin
    raise exception using errcode = 'RL001', message = p_message, detail = p_where, hint = p_hint;
end
$function$;

comment on function counterfoil.raise_invalid_argument(text, text, text) is 'Raises RL001.';

revoke all on function counterfoil.raise_invalid_argument(text, text, text) from public;
"""

GRANTS = """\
[common]
raise_invalid_argument = []
whisper = []

[attempts]
shout = ["worker"]
"""

Write = Callable[[str, str], Path]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Root of the SQL tree."""
    for path, text in (
        ("functions/attempts/shout.sql", FUNCTION),
        ("functions/common/raise_invalid_argument.sql", HELPER),
        ("grants.toml", GRANTS),
        ("migrations/0001_words.sql", "create table counterfoil.words (word text);\n"),
    ):
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return tmp_path
