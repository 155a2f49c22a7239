"""Isolation specs are compared word for word with what was expected."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.suite.isolation import find_tester, run_spec

SPEC = """\
setup { create table t (n int); insert into t values (1); }
session one
step lock { begin; select n from t for update; }
step free { commit; }
session two
step wait { select n from t for update; }
permutation lock wait free
"""

PRINTED = """\
Parsed test spec with 2 sessions

starting permutation: lock wait free
step lock: begin; select n from t for update;
n
-
1
(1 row)

step wait: select n from t for update; <waiting ...>
step free: commit;
step wait: <... completed>
n
-
1
(1 row)

"""


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "two_wait.spec"
    path.write_text(SPEC)
    return path


def run(admin_dsn: str, database: str, spec: Path) -> str | None:
    return run_spec(find_tester(admin_dsn), database, spec, expected=spec.parent)


def test_a_spec_passes_that_prints_what_was_expected(
    admin_dsn: str, database: str, spec: Path
) -> None:
    (spec.parent / "two_wait.out").write_text(PRINTED)
    assert run(admin_dsn, database, spec) is None


def test_any_of_several_orders_may_be_right(admin_dsn: str, database: str, spec: Path) -> None:
    (spec.parent / "two_wait.out").write_text("something else\n")
    (spec.parent / "two_wait_1.out").write_text(PRINTED)
    assert run(admin_dsn, database, spec) is None


def test_a_difference_is_shown(admin_dsn: str, database: str, spec: Path) -> None:
    (spec.parent / "two_wait.out").write_text(PRINTED.replace(" <waiting ...>", ""))
    problem = run(admin_dsn, database, spec)
    assert problem is not None
    assert "+step wait: select n from t for update; <waiting ...>" in problem


def test_another_specs_expectation_does_not_count(
    admin_dsn: str, database: str, spec: Path
) -> None:
    (spec.parent / "two_wait_longer.out").write_text(PRINTED)
    problem = run(admin_dsn, database, spec)
    assert problem is not None
    assert "does not exist" in problem


def test_a_spec_that_cannot_be_run_fails(admin_dsn: str, database: str, spec: Path) -> None:
    spec.write_text("session one step broken {")
    problem = run(admin_dsn, database, spec)
    assert problem is not None
    assert "isolationtester ended with" in problem
