"""Each house rule lets the good tree through and finds what breaks it, on its line."""

# ruff: noqa: E501  (the samples are SQL, one to a line)

from __future__ import annotations

from pathlib import Path

import pytest

from lint import house

SHOUT = "functions/attempts/shout.sql"
HELPER = "functions/common/raise_invalid_argument.sql"
MIGRATION = "migrations/0001_words.sql"


def rules(tree: Path) -> list[str]:
    """Names of the rules that the tree breaks."""
    return [finding.rule for finding in house.check(tree)]


def edit(tree: Path, path: str, old: str, new: str) -> None:
    """Replace a passage that is there."""
    text = (tree / path).read_text(encoding="utf-8")
    assert old in text
    (tree / path).write_text(text.replace(old, new), encoding="utf-8")


def test_the_good_tree_passes(tree: Path) -> None:
    assert house.check(tree) == []


BROKEN = [
    ("one-name", SHOUT, "function counterfoil.shout(p_word", "function counterfoil.cry(p_word"),
    ("one-name", SHOUT, "function counterfoil.shout(p_word", "function shout(p_word"),
    ("one-name", SHOUT, "create or replace", "create"),
    ("one-name", SHOUT, "$function$", "$$"),
    ("header", SHOUT, "-- shout: what", "-- what"),
    ("header", SHOUT, "Promises: something. ", ""),
    ("header", SHOUT, "Locks: nothing.", ""),
    ("header", SHOUT, "-- Raises:   RL001.", "-- Raises:"),
    ("header", SHOUT, "-- Since:    1\n", ""),
    ("names", SHOUT, "p_times", "times"),
    ("names", SHOUT, "v_now", "moment"),
    ("names", SHOUT, "    return query", "    for i in 1..2 loop null; end loop;\n    return query"),
    ("markings", SHOUT, "volatile\n", ""),
    ("markings", SHOUT, "parallel unsafe\n", ""),
    ("markings", SHOUT, "called on null input\n", ""),
    ("markings", HELPER, "security invoker\n", ""),
    ("markings", SHOUT, "security definer", "security invoker"),
    ("markings", HELPER, "security invoker", "security definer"),
    ("markings", "grants.toml", 'shout = ["worker"]', ""),
    ("search-path", SHOUT, "set search_path = pg_catalog, pg_temp\n", ""),
    ("search-path", SHOUT, "pg_catalog, pg_temp", "pg_temp, pg_catalog"),
    ("search-path", HELPER, "set search_path = pg_catalog, pg_temp\n", ""),
    ("comment-and-revoke", SHOUT, "comment on function counterfoil.shout(text, integer)", "comment on function counterfoil.shout(text)"),
    ("comment-and-revoke", SHOUT, "is 'Says it.'", "is ''"),
    ("comment-and-revoke", SHOUT, "revoke all on function counterfoil.shout(text, integer) from public;", ""),
    ("comment-and-revoke", SHOUT, "from public", "from someone"),
    ("comment-and-revoke", SHOUT, "revoke all on", "revoke execute on"),
    ("raise", SHOUT, "perform counterfoil.raise_invalid_argument('m', 'p_word', 'h')", "raise exception using errcode = 'RL001', message = 'm', detail = 'd', hint = 'h'"),
    ("raise", HELPER, "errcode = 'RL001', ", ""),
    ("raise", HELPER, "message = p_message, ", ""),
    ("raise", HELPER, "detail = p_where, ", ""),
    ("raise", HELPER, ", hint = p_hint", ""),
    ("exception-block", SHOUT, "end\n$function$", "exception when others then raise;\nend\n$function$"),
    ("qualified", SHOUT, "from counterfoil.words as x", "from words as x"),
    ("qualified", SHOUT, "perform counterfoil.raise_invalid", "perform raise_invalid"),
    ("column-alias", SHOUT, "where w.word = p_word", "where word = p_word"),
    ("volatile", SHOUT, "set said_at = v_now", "set said_at = clock_timestamp()"),
    ("volatile", SHOUT, "on conflict (word) do nothing", "on conflict (word) do update set said_at = clock_timestamp()"),
    ("volatile", SHOUT, "do nothing;", "do nothing returning gen_random_uuid() into v_found;"),
    ("optional-filter", SHOUT, "where w.word = p_word", "where (p_word is null or w.word = p_word)"),
    ("advisory-lock", SHOUT, "v_now := clock_timestamp();", "perform pg_advisory_xact_lock(1);"),
    ("merge", SHOUT, "    return query", "    merge into counterfoil.words as w using counterfoil.words as x on x.word = w.word when matched then delete;\n    return query"),
    ("trigger", SHOUT, "comment on", "create trigger t before insert on counterfoil.words for each row execute function counterfoil.f();\ncomment on"),
    ("lower-case", SHOUT, "returns table", "RETURNS table"),
    ("lower-case", SHOUT, "for update of w", "FOR UPDATE of w"),
    ("lower-case", SHOUT, "said_at", "saidAt"),
    ("escape", SHOUT, "v_now := clock_timestamp();", r"v_now := clock_timestamp() + e'1\\\v'::interval;"),
    ("line-length", SHOUT, "v_now := clock_timestamp();", "v_now := clock_timestamp();" + " " * 150 + "-- far"),
    ("allows", SHOUT, "-- Since:    1\n", "-- Since:    1\n-- allows: merge: no reason, as there is none\n"),
    ("parse", SHOUT, "if v_found.word is null then", "if v_found.word is null"),
    ("qualified", MIGRATION, "counterfoil.words", "words"),
    ("lower-case", MIGRATION, "create table", "CREATE table"),
    ("trigger", MIGRATION, "(word text);", "(word text);\ncreate trigger t before insert on counterfoil.words for each row execute function counterfoil.f();"),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "path", "old", "new"), BROKEN)
def test_a_rule_finds_what_breaks_it(tree: Path, rule: str, path: str, old: str, new: str) -> None:
    edit(tree, path, old, new)
    assert rule in rules(tree)


def test_every_rule_has_a_sample_that_breaks_it() -> None:
    named = {rule for rule, *_ in BROKEN}
    assert named >= {
        *("one-name", "header", "names", "markings", "search-path", "comment-and-revoke", "raise"),
        *("exception-block", "qualified", "column-alias", "volatile", "optional-filter", "merge"),
        *("advisory-lock", "trigger", "lower-case", "escape", "line-length", "allows", "parse"),
    }


def test_a_finding_names_the_line(tree: Path) -> None:
    edit(tree, SHOUT, "where w.word = p_word", "where word = p_word")
    (finding,) = house.check(tree)
    lines = (tree / SHOUT).read_text(encoding="utf-8").splitlines()
    assert "where word = p_word" in lines[finding.line - 1]


def test_a_file_may_allow_itself_what_it_gives_a_reason_for(tree: Path) -> None:
    edit(tree, SHOUT, "where w.word = p_word", "where (p_word is null or w.word = p_word)")
    edit(tree, SHOUT, "-- Since:    1\n", "-- Since:    1\n-- allows: optional-filter: cold\n")
    assert house.check(tree) == []


def test_a_reason_has_to_be_given(tree: Path) -> None:
    edit(tree, SHOUT, "where w.word = p_word", "where (p_word is null or w.word = p_word)")
    edit(tree, SHOUT, "-- Since:    1\n", "-- Since:    1\n-- allows: optional-filter:\n")
    assert rules(tree) == ["optional-filter"]


def test_overloads_are_told_apart_by_signature(tree: Path) -> None:
    text = (tree / SHOUT).read_text(encoding="utf-8")
    overload = text[text.index("create or replace") : text.index("comment on")]
    overload = overload.replace("p_word text, p_times integer default 1", "p_times integer")
    overload = overload.replace("p_word", "p_times::text")
    (tree / SHOUT).write_text(f"{text}\n{overload}", encoding="utf-8")
    assert sorted(rules(tree)) == ["comment-and-revoke", "comment-and-revoke"]


def test_inlined_sql_needs_no_search_path(tree: Path) -> None:
    (tree / "functions/common/whisper.sql").write_text(
        "-- whisper: lower.\n-- Promises: it. Locks: nothing. Raises: nothing. Since: 1\n\n"
        "create or replace function counterfoil.whisper(p_word text)\nreturns text\n"
        "language sql\nimmutable\nparallel safe\nstrict\nsecurity invoker\nas $function$\n"
        "    select lower(p_word)\n$function$;\n\n"
        "comment on function counterfoil.whisper(text) is 'Lower.';\n\n"
        "revoke all on function counterfoil.whisper(text) from public;\n",
        encoding="utf-8",
    )
    assert house.check(tree) == []
