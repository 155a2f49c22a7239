"""The ready-made linters are set up so that they object to what they are there for."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from lint import bodies, reference, rooms
from lint.__main__ import GATES, ROOT, pgspot_says, run
from lint.sources import read_tree
from tests.py.lint.conftest import FUNCTION
from tests.servers.throwaway import ThrowawayServer


def tool(*command: str | Path) -> tuple[int, str]:
    """Exit code and output of a linter of our environment, under our configuration."""
    program = Path(sys.executable).parent / str(command[0])
    ran = subprocess.run([program, *command[1:]], cwd=ROOT, capture_output=True, text=True)
    return ran.returncode, ran.stdout + ran.stderr


def write(folder: Path, text: str) -> Path:
    """A SQL file with this text."""
    path = folder / "sample.sql"
    path.write_text(text, encoding="utf-8")
    return path


STYLE = {
    "CP01": "SELECT 1 as n;",
    "CP02": "select 1 as N;",
    "CP03": "select Upper('a') as n;",
    "CP04": "select NULL as n;",
    "CP05": "create table counterfoil.t (n INT);",
    "AL01": "select 1 as n from counterfoil.t t;",
    "LT01": "select  1 as n;",
}


def test_sqlfluff_objects(tmp_path: Path) -> None:
    for rule, sql in STYLE.items():
        (tmp_path / f"{rule}.sql").write_text(f"{sql}\n")
    code, said = tool("sqlfluff", "lint", "--nocolor", "--config", ".sqlfluff", tmp_path)
    assert code != 0
    of_file = {part.partition("]")[0][-8:-4]: part for part in said.split("== [")[1:]}
    assert {rule for rule in STYLE if f"| {rule} |" not in of_file.get(rule, "")} == set()


def test_sqlfluff_looks_into_large_files(tmp_path: Path) -> None:
    large = f"/* {'long ' * 5000} */\nSELECT 1 as n;\n"
    code, said = tool(
        "sqlfluff", "lint", "--nocolor", "--rules", "CP01", "--config", ".sqlfluff",
        write(tmp_path, large),
    )  # fmt: skip
    assert code != 0, said
    assert "CP01" in said


@pytest.mark.parametrize(
    ("sql", "rule"),
    [
        ("alter table counterfoil.runs drop column status;", "ban-drop-column"),
        ("create index i on counterfoil.runs (status);", "require-concurrent-index-creation"),
        ("alter table counterfoil.runs alter column a type bigint;", "changing-column-type"),
        ("alter table counterfoil.runs rename to ran;", "renaming-table"),
    ],
)
def test_squawk_objects_to_what_locks_or_breaks(tmp_path: Path, sql: str, rule: str) -> None:
    code, said = tool("squawk", "--config", ".squawk.toml", write(tmp_path, f"{sql}\n"))
    assert code != 0
    assert rule in said


def test_pgspot_objects_to_an_unsafe_definer(tmp_path: Path) -> None:
    assert pgspot_says([write(tmp_path, FUNCTION)]) == []
    unsafe = FUNCTION.replace("set search_path = pg_catalog, pg_temp\n", "")
    (said,) = pgspot_says([write(tmp_path, unsafe)])
    assert "PS003" in said


def test_pgspot_reads_bodies(tmp_path: Path) -> None:
    unsafe = FUNCTION.replace(
        "v_now := clock_timestamp();", "create table if not exists counterfoil.t (n int);"
    )
    (said,) = pgspot_says([write(tmp_path, unsafe)])
    assert "PS012" in said


def test_a_text_that_pgspot_cannot_read_is_not_passed_over(tmp_path: Path) -> None:
    broken = FUNCTION.replace("if v_found.word is null then", "if v_found.word is null")
    assert pgspot_says([write(tmp_path, broken)]) != []


@pytest.fixture(scope="module")
def oldest() -> Iterator[psycopg.Connection]:
    """A database of PostgreSQL 15 with plpgsql_check and a schema of samples."""
    with ThrowawayServer("15") as server, psycopg.connect(server.dsn(), autocommit=True) as link:
        link.execute("create extension plpgsql_check")
        yield link


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("select w.nothing into v_n from samples.words as w;", "column w.nothing does not exist"),
        ("perform 1; return 'x'::text;", "performance"),
        ("v_n := p_n; return v_n; v_n := 2;", "unreachable code"),
        ("return p_n;", 'unused variable "v_n"'),
        ("execute 'select ' || p_text into v_n; return v_n;", "SQL injection"),
    ],
)
def test_plpgsql_check_objects(oldest: psycopg.Connection, body: str, said: str) -> None:
    with oldest.transaction(force_rollback=True):
        oldest.execute("create schema samples; create table samples.words (word text)")
        oldest.execute(
            "create function samples.f(p_n int, p_text text) returns int language plpgsql "
            f"volatile as $function$ declare v_n int; begin {body} end $function$".encode()
        )
        found = bodies.check_schema(oldest, "samples")
    assert any(said in line for line in found), found


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("def f(x):\n    return x\n", "missing a type annotation"),
        ("def f(x: list) -> None: ...\n", "Missing type arguments"),
    ],
)
def test_mypy_is_strict(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "sample.py"
    path.write_text(text)
    code, out = tool("mypy", "--config-file", "pyproject.toml", path)
    assert code != 0
    assert said in out


def test_ruff_objects(tmp_path: Path) -> None:
    path = tmp_path / "sample.py"
    path.write_text('"""A sample."""\n\nimport os\n\nvalue = eval( "1" )\n')
    code, said = tool("ruff", "check", "--config", "pyproject.toml", path)
    assert code != 0
    assert {"F401", "S307"} <= set(said.replace("[", " ").split())
    code, _ = tool("ruff", "format", "--check", "--config", "pyproject.toml", path)
    assert code != 0


def test_calls_are_read_from_the_catalog_too(oldest: psycopg.Connection) -> None:
    body = "returns void language plpgsql as $function$ begin perform {}; end $function$"
    with oldest.transaction(force_rollback=True):
        oldest.execute("create schema samples")
        for name, does in [
            ("raise_not_found", "1"),
            ("health", "samples.raise_not_found()"),
            ("raise_capacity", "samples.health()"),
        ]:
            oldest.execute(f"create function samples.{name}() {body.format(does)}".encode())
        found = rooms.check_catalog(oldest, "samples", read_tree(ROOT / "sql"))
    assert found == ["raise_capacity(): common calls health() of operations, a room after it"]


def test_plpgsql_check_without_anything_to_check_objects(oldest: psycopg.Connection) -> None:
    with oldest.transaction(force_rollback=True):
        oldest.execute("create schema samples")
        assert bodies.check_schema(oldest, "samples") != []


def test_the_reference_follows_the_schema(installed: str) -> None:
    tree = read_tree(ROOT / "sql")
    before = reference.describe(installed, tree)
    with psycopg.connect(installed, autocommit=True) as connection:
        connection.execute("comment on table counterfoil.settings is 'Something else.'")
    after = reference.describe(installed, tree)
    assert before != after
    assert "Something else." in after
    assert "#### `admit_launch(p_launch jsonb)`" in after
    assert "write_facts" not in after


def test_a_gate_that_objects_is_shown(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(GATES, "good", lambda: [])
    monkeypatch.setitem(GATES, "bad", lambda: ["a.sql:1: it: is bad"])
    monkeypatch.setitem(GATES, "broken", lambda: [str(1 // 0)])
    verdicts = run(["good", "bad", "broken"])
    assert [bool(verdict.problems) for verdict in verdicts] == [False, True, True]
    said = capsys.readouterr().out
    assert "good .. ok" in said
    assert "bad .. FAILED" in said
    assert "a.sql:1: it: is bad" in said
    assert "the gate broke down: ZeroDivisionError" in said
