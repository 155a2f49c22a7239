"""The suite's closing line counts what the runners said."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from tests.suite import pgtap, pytests
from tests.suite.__main__ import guarded
from tests.suite.outcome import Outcome


def test_pg_prove_that_passed() -> None:
    output = "a.sql .. ok\nAll tests successful.\nFiles=1, Tests=7,  0 wallclock secs\n"
    assert pgtap.read_counts(output, 0) == (7, 0)


def test_pg_prove_that_failed() -> None:
    output = (
        "Test Summary Report\n-------------------\n"
        "a.sql (Wstat: 0 Tests: 5 Failed: 2)\n  Failed tests:  1-2\n"
        "b.sql (Wstat: 768 (exited 3) Tests: 1 Failed: 0)\n  Non-zero exit status: 3\n"
        "Files=3, Tests=10,  0 wallclock secs\nResult: FAIL\n"
    )
    assert pgtap.read_counts(output, 1) == (8, 3)


def test_pg_prove_that_could_not_start() -> None:
    assert pgtap.read_counts("", 2) == (0, 1)


def test_pytest_reports(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    report.write_text(
        '<testsuites><testsuite tests="9" skipped="1" failures="2" errors="1"/></testsuites>'
    )
    assert pytests.read_counts(report, 1) == (5, 3)


@pytest.mark.parametrize(("exit_code", "failed"), [(0, 0), (2, 1), (5, 0)])
def test_pytest_without_a_report(tmp_path: Path, exit_code: int, failed: int) -> None:
    assert pytests.read_counts(tmp_path / "none.xml", exit_code) == (0, failed)


def test_an_outcome_fails_when_anything_failed() -> None:
    assert Outcome("x", 3, 0, 1.0).exit_code == 0
    assert Outcome("x", 3, 1, 1.0).exit_code == 1
    assert "FAILED" in Outcome("x", 3, 1, 1.0).line()


def test_a_part_that_breaks_down_counts_as_failed(capsys: pytest.CaptureFixture[str]) -> None:
    def breaks(name: str) -> Outcome:
        raise RuntimeError("no server today")

    outcome = guarded("a part", breaks)
    assert (outcome.part, outcome.passed, outcome.failed) == ("a part", 0, 1)
    assert "no server today" in capsys.readouterr().err


def test_each_file_gets_a_database_of_its_own_that_goes_with_it(
    admin_dsn: str, database: str, tmp_path: Path
) -> None:
    kept = "create table kept (n int); commit; begin;\n"  # the second would fail on the first's
    for name in ("a", "b"):
        (tmp_path / f"{name}.sql").write_text(f"begin;\n{kept}select '1..1';\nselect 'ok 1';\n")
    files = [tmp_path / "a.sql", tmp_path / "b.sql"]
    before = databases(admin_dsn)
    assert pgtap.with_pg_prove(database, files) == (2, 0)
    assert pgtap.with_our_own(admin_dsn, database, files) == (2, 0)
    assert databases(admin_dsn) == before


def databases(admin_dsn: str) -> set[str]:
    with psycopg.connect(admin_dsn) as connection:
        found = connection.execute("select d.datname from pg_catalog.pg_database as d").fetchall()
    return {name for (name,) in found}
