"""The suite's closing line counts what the runners said."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.suite import pgtap, pytests
from tests.suite.outcome import Outcome

ROOT = Path(__file__).parents[3]


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


def test_files_that_run_at_once_have_databases_of_their_own(tmp_path: Path) -> None:
    # The wrapper around psql gives the second caller the second database while the first is open.
    wrapper = ROOT / "tests/suite/psql-of-pool"
    folder = tmp_path / "bin"
    folder.mkdir()
    psql = folder / "psql"
    psql.write_text('#!/bin/sh\necho "$PGDATABASE"\nread -r _ || true\n')
    psql.chmod(0o755)
    environment = {
        "PATH": f"{folder}:/usr/bin:/bin",
        "COUNTERFOIL_TEST_POOL": "first second",
        "COUNTERFOIL_TEST_LOCKS": str(tmp_path),
    }

    def start() -> subprocess.Popen[str]:
        return subprocess.Popen(
            [wrapper], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    one = start()
    assert one.stdout is not None
    assert one.stdout.readline() == "first\n"
    two = start()
    assert two.stdout is not None
    assert two.stdout.readline() == "second\n"
    three = start()
    assert "more jobs than databases" in three.communicate()[1]
    assert three.returncode == 1
    for process in (one, two):
        process.communicate("")
    four = start()
    assert four.communicate("")[0] == "first\n"
