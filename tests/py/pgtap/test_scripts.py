"""Test files are cut into statements as psql would cut them."""

from __future__ import annotations

from pathlib import Path

import pytest

from counterfoil.pgtap import ScriptError, read_script


def statements(folder: Path, text: str) -> list[str]:
    """The statements of a file with this text."""
    path = folder / "script.sql"
    path.write_text(text, encoding="utf-8")
    return [statement.sql for statement in read_script(path)]


@pytest.mark.parametrize(
    "statement",
    [
        "select 1;",
        "select 'a;b', 'it''s; fine';",
        r"select E'it\'s; fine';",
        'select 1 as "odd;name";',
        "select $$a;b$$;",
        "select $tag$a;$$;b$tag$;",
        "select 1 -- no; end\n;",
        "select /* no; /* nested; */ end; */ 1;",
        "create rule r as on insert to t do also (select 1; select 2);",
        "create function f() returns int language sql begin atomic select 1; select 2; end;",
        "create function f() returns int language sql\n"
        "begin atomic select case when true then 1 end; select 2; end;",
        "select a$b, c$d from t;",
        "select $1;",
        "select 1e5, .5;",
    ],
)
def test_a_semicolon_ends_a_statement_only_where_it_means_it(
    tmp_path: Path, statement: str
) -> None:
    assert statements(tmp_path, f"{statement}\nselect 'next';") == [statement, "select 'next';"]


def test_the_last_statement_needs_no_semicolon(tmp_path: Path) -> None:
    assert statements(tmp_path, "select 1;\nselect 2\n") == ["select 1;", "select 2"]


def test_comments_and_empty_statements_are_not_sent(tmp_path: Path) -> None:
    assert statements(tmp_path, "-- only words\n;;\n/* more */\n") == []


def test_a_statement_knows_its_line(tmp_path: Path) -> None:
    path = tmp_path / "script.sql"
    path.write_text("select 1;\n\n\nselect\n2;\n")
    assert [statement.line for statement in read_script(path)] == [1, 4]


def test_files_are_included_from_where_the_file_lies(tmp_path: Path) -> None:
    (tmp_path / "room").mkdir()
    (tmp_path / "setup.psql").write_text("select 'setup';\n")
    script = tmp_path / "room/script.sql"
    script.write_text("begin;\n\\ir ../setup.psql\nselect 'test';\n\\ir '../setup.psql'\n")
    assert [statement.sql for statement in read_script(script)] == [
        "begin;",
        "select 'setup';",
        "select 'test';",
        "select 'setup';",
    ]


def test_settings_of_psql_are_passed_over(tmp_path: Path) -> None:
    assert statements(tmp_path, "\\set ON_ERROR_STOP on\n\\pset format unaligned\nselect 1;") == [
        "select 1;"
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("select 1;\n\\copy t from 'x'\n", r"script.sql:2: \\copy is not understood"),
        ("\\ir nowhere.psql\n", r"script.sql:1: .*nowhere.psql is not a file"),
        ("select 1;\nselect $a$ open", r"script.sql:2: \$a\$ is never closed"),
        ("select 1; /* open", r"script.sql:1: a comment is never closed"),
        ("select 'open;", r"script.sql:1: a quote is never closed"),
    ],
)
def test_what_cannot_be_read_is_named_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ScriptError, match=said):
        statements(tmp_path, text)


def test_every_test_file_of_the_house_can_be_read() -> None:
    files = sorted((Path(__file__).parents[2] / "pgtap").rglob("*.sql"))
    assert files
    for path in files:
        first, *_, last = [statement.sql for statement in read_script(path)]
        assert (first.split()[0].strip(";"), last) == ("begin", "rollback;"), path
