"""Run pytest on one server and count from its JUnit report."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.suite.outcome import Outcome

ROOT = Path(__file__).parents[2]


JOBS = 2


def run(part: str, server: Mapping[str, str], paths: Sequence[Path], marker: str | None) -> Outcome:
    """Run pytest; ``server`` is what tells ``conftest.py`` the server, as environment variables.

    Servers of the suite are started by pytest's own processes, one each, so that roles and other
    things of a whole server are not shared by tests that run at the same time; on a given server
    they run one after the other. With ``marker`` only what has it is run.
    """
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", f"--junitxml={report}"]
        command += ["--durations=10", "--durations-min=5"]
        command += ["-m", marker] if marker else []
        if "COUNTERFOIL_TEST_DSN" not in server:
            command += ["--numprocesses", str(JOBS), "--dist", "worksteal"]
        command += [str(path) for path in paths]
        # What a person set for their own installation must not leak into the tests.
        own = {k: v for k, v in os.environ.items() if not k.startswith("COUNTERFOIL_")}
        ran = subprocess.run(command, cwd=ROOT, env=own | dict(server))
        passed, failed = read_counts(report, ran.returncode)
    return Outcome(part, passed, failed, time.monotonic() - began)


def read_counts(report: Path, exit_code: int) -> tuple[int, int]:
    """Passed and failed tests; a run that ends badly without one counts as one failure."""
    passed = failed = 0
    if report.exists():
        for suite in ET.parse(report).getroot().iter("testsuite"):
            tests, skipped = int(suite.get("tests", 0)), int(suite.get("skipped", 0))
            broken = int(suite.get("failures", 0)) + int(suite.get("errors", 0))
            failed += broken
            passed += tests - skipped - broken
    if exit_code not in (0, 5):  # 5: nothing was selected
        failed = max(failed, 1)
    return passed, failed
