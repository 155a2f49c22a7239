"""Run the pgTAP files on one server: with pg_prove where there is one, else with our own runner."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict

from counterfoil import pgtap
from tests.servers.databases import database_name, install, temporary_database
from tests.suite.outcome import Outcome

JOBS = 2
ROOT = Path(__file__).parents[2]
_FILES = ROOT / "tests/pgtap"
_RAN = re.compile(r"^Files=\d+, Tests=(\d+)", re.MULTILINE)
_FAILED = re.compile(r"^\S.* \(Wstat: .* Tests: \d+ Failed: (\d+)\)$", re.MULTILINE)
_VARIABLES = {"host": "PGHOST", "port": "PGPORT", "user": "PGUSER", "password": "PGPASSWORD"}


def run(part: str, admin_dsn: str, paths: Sequence[Path] = ()) -> Outcome:
    """Run the files below ``paths`` (all of them by default) on the server of ``admin_dsn``."""
    began = time.monotonic()
    files = pgtap.find_files(list(paths) or [_FILES])
    with temporary_database(admin_dsn) as template:
        install(template, "pgtap")
        if shutil.which("pg_prove") and shutil.which("psql"):
            passed, failed = with_pg_prove(template, files)
        else:
            passed, failed = with_our_own(admin_dsn, template, files)
    return Outcome(part, passed, failed, time.monotonic() - began)


def with_our_own(admin_dsn: str, template: str, files: Sequence[Path]) -> tuple[int, int]:
    """Passed and failed tests of ``files``, one after the other, by ``counterfoil.pgtap``."""
    passed = failed = 0
    for path in files:
        with temporary_database(admin_dsn, database_name(template)) as dsn:
            summary = pgtap.run_files(dsn, [path], print)
        passed, failed = passed + summary.passed, failed + summary.failed
    return passed, failed


def with_pg_prove(template: str, files: Sequence[Path]) -> tuple[int, int]:
    """Passed and failed tests of ``files``, some at a time, by pg_prove."""
    found = conninfo_to_dict(template)
    environment = os.environ | {
        **{name: str(found[key]) for key, name in _VARIABLES.items() if key in found},
        "COUNTERFOIL_TEST_TEMPLATE": database_name(template),
    }
    proved = subprocess.run(
        [
            *("pg_prove", "--psql-bin", str(ROOT / "tests/suite/psql-of-own-database")),
            *("--jobs", str(JOBS), "--failures", "--comments", "--nocount", "--nocolor"),
            *(os.path.relpath(path) for path in files),
        ],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    print(proved.stdout, end="", flush=True)
    return read_counts(proved.stdout, proved.returncode)


def read_counts(output: str, exit_code: int) -> tuple[int, int]:
    """Passed and failed tests from what pg_prove printed; a file that died counts as one."""
    ran = _RAN.search(output)
    tests = int(ran[1]) if ran else 0
    per_file = [int(match[1]) for match in _FAILED.finditer(output)]
    failed = sum(max(count, 1) for count in per_file)
    if exit_code != 0:
        failed = max(failed, 1)
    return tests - sum(per_file), failed
