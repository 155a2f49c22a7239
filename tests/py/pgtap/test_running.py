"""What makes a pgTAP file pass or fail, and that it leaves nothing behind."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from counterfoil.pgtap import FileResult, ScriptError, find_files, run_file, run_files


def run(dsn: str, folder: Path, *lines: str) -> FileResult:
    """Run a file whose statements answer these lines of TAP, or are SQL themselves."""
    path = folder / "test.sql"
    path.write_text(
        "\n".join(line if line.endswith(";") else f"select '{line}';" for line in lines)
    )
    return run_file(dsn, path)


def test_a_file_passes_that_runs_what_it_planned(database: str, tmp_path: Path) -> None:
    result = run(database, tmp_path, "1..2", "ok 1 - a", "# said", "ok 2", "select null;")
    assert result.ok
    assert (result.planned, result.passed, result.failed) == (2, 2, 0)


def test_a_plan_may_come_last(database: str, tmp_path: Path) -> None:
    assert run(database, tmp_path, "ok 1", "1..1").ok


def test_one_answer_may_hold_several_lines(database: str, tmp_path: Path) -> None:
    result = run(database, tmp_path, "1..2", "select E'ok 1\\nnot ok 2 - b\\n# why';")
    assert (result.passed, result.failed) == (1, 1)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (("1..1", "not ok 1 - a"), "test 1 failed: - a"),
        (("1..2", "ok 1"), "2 tests were planned, 1 ran"),
        (("1..1", "ok 1", "ok 2"), "1 tests were planned, 2 ran"),
        (("ok 1",), "no plan was stated"),
        (("1..2", "ok 1", "ok 3"), "test 2 came with the number 3"),
        (("1..1", "ok 1", "select 1/0;"), "test.sql:3: died: division by zero"),
        (("1..1", "ok 1", "Bail out! gone"), "Bail out! gone"),
        (("1..0",), "no test ran"),
        (("select 1;",), "no plan was stated"),
    ],
)
def test_a_file_fails(database: str, tmp_path: Path, lines: tuple[str, ...], said: str) -> None:
    result = run(database, tmp_path, *lines)
    assert not result.ok
    assert any(said in problem for problem in result.problems), result.problems


def test_a_known_failure_and_a_skip_do_not_fail(database: str, tmp_path: Path) -> None:
    assert run(database, tmp_path, "1..2", "not ok 1 # TODO later", "ok 2 # SKIP not here").ok
    assert run(database, tmp_path, "1..0 # SKIP nothing here").ok


def test_what_came_before_the_death_of_a_file_is_counted(database: str, tmp_path: Path) -> None:
    result = run(database, tmp_path, "1..3", "ok 1", "ok 2", "select 1/0;")
    assert (result.passed, result.failed) == (2, 0)


def test_files_run_in_sessions_of_their_own_and_leave_nothing(
    database: str, tmp_path: Path
) -> None:
    body = "begin;\ncreate table public.left_over (n int);\nselect '1..1';\nselect 'ok 1';\n"
    for name in ("a", "b"):
        (tmp_path / f"{name}.sql").write_text(body)  # the second would fail on the first's table
    said: list[str] = []
    summary = run_files(database, [tmp_path], said.append)
    assert (summary.passed, summary.failed) == (2, 0)
    assert [line.rpartition(" ")[2] for line in said] == ["ok", "ok"]
    with psycopg.connect(database) as connection:
        assert connection.execute("select to_regclass('left_over')").fetchone() == (None,)


def test_a_file_that_only_misses_its_plan_counts_as_a_failure(
    database: str, tmp_path: Path
) -> None:
    (tmp_path / "a.sql").write_text("select '1..2'; select 'ok 1';")
    said: list[str] = []
    summary = run_files(database, [tmp_path], said.append)
    assert (summary.passed, summary.failed) == (1, 1)
    assert said[1].strip() == "2 tests were planned, 1 ran"


def test_files_are_found_in_folders_once_and_in_order(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    for name in ("b/z.sql", "a.sql", "setup.psql"):
        (tmp_path / name).touch()
    assert find_files([tmp_path, tmp_path / "a.sql"]) == [tmp_path / "a.sql", tmp_path / "b/z.sql"]
    with pytest.raises(ScriptError, match="no such file"):
        find_files([tmp_path / "nowhere"])
