"""Run the pgTAP files on one server: with pg_prove where there is one, else with our own runner."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
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
    with ExitStack() as stack:
        template = stack.enter_context(temporary_database(admin_dsn))
        install(template, "pgtap")
        pool = [
            stack.enter_context(temporary_database(admin_dsn, database_name(template)))
            for _ in range(JOBS)
        ]
        if shutil.which("pg_prove") and shutil.which("psql"):
            passed, failed = _with_pg_prove(pool, files)
        else:
            summary = pgtap.run_files(pool[0], files, print)
            passed, failed = summary.passed, summary.failed
    return Outcome(part, passed, failed, time.monotonic() - began)


def _with_pg_prove(pool: Sequence[str], files: Sequence[Path]) -> tuple[int, int]:
    found = conninfo_to_dict(pool[0])
    with tempfile.TemporaryDirectory() as locks:
        environment = os.environ | {
            **{name: str(found[key]) for key, name in _VARIABLES.items() if key in found},
            "COUNTERFOIL_TEST_POOL": " ".join(database_name(dsn) for dsn in pool),
            "COUNTERFOIL_TEST_LOCKS": locks,
        }
        proved = subprocess.run(
            [
                *("pg_prove", "--psql-bin", str(ROOT / "tests/suite/psql-of-pool")),
                *("--jobs", str(len(pool)), "--failures", "--comments", "--nocount", "--nocolor"),
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
