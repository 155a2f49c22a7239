"""Run the isolation specs: what two or more sessions that run at the same time may see.

A spec is ``tests/isolation/specs/NAME.spec``, in the language of PostgreSQL's ``isolationtester``.
What it prints must equal ``tests/isolation/expected/NAME.out``, or ``NAME_1.out`` … where more than
one order of events is right. Each spec gets a database of its own with the schema installed.
"""

from __future__ import annotations

import difflib
import subprocess
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg

from tests.servers.databases import database_name, install, temporary_database
from tests.servers.throwaway import EMBEDDED, MissingServerError, find_installation
from tests.suite.outcome import Outcome

JOBS = 2
ROOT = Path(__file__).parents[2]
SPECS = ROOT / "tests/isolation/specs"
EXPECTED = ROOT / "tests/isolation/expected"
RESULTS = ROOT / "build/isolation"
_SECONDS = 120


def run(part: str, admin_dsn: str, paths: Sequence[Path] = ()) -> Outcome:
    """Run the specs named (all of them by default) on the server of ``admin_dsn``."""
    began = time.monotonic()
    specs = [path for path in paths if path.is_file()] or sorted(SPECS.glob("*.spec"))
    tester = find_tester(admin_dsn)
    RESULTS.mkdir(parents=True, exist_ok=True)
    with temporary_database(admin_dsn) as template:
        install(template)

        def one(spec: Path) -> tuple[Path, str | None]:
            with temporary_database(admin_dsn, database_name(template)) as dsn:
                return spec, run_spec(tester, dsn, spec)

        with ThreadPoolExecutor(JOBS) as pool:
            results = list(pool.map(one, specs))
    for spec, problem in results:
        print(f"{spec.stem} .. {'ok' if problem is None else 'FAILED'}")
        if problem is not None:
            print(problem)
    failed = sum(problem is not None for _, problem in results)
    return Outcome(part, len(results) - failed, failed, time.monotonic() - began)


def find_tester(admin_dsn: str) -> Path:
    """The ``isolationtester`` of the server's own version, or else the embedded one's."""
    with psycopg.connect(admin_dsn) as connection:
        major = connection.info.server_version // 10000
    for which in (str(major), EMBEDDED):
        try:
            tester = find_installation(which).isolationtester
        except MissingServerError:
            continue
        if tester.exists():
            return tester
    raise MissingServerError(
        "isolationtester is missing; on Debian the package is postgresql-client-15"
    )


def run_spec(tester: Path, dsn: str, spec: Path, expected: Path = EXPECTED) -> str | None:
    """Run one spec in the database of ``dsn``; answers what is wrong, or None."""
    with spec.open("rb") as script:
        try:
            ran = subprocess.run(
                [tester, dsn],
                stdin=script,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=_SECONDS,
                text=True,
            )
        except subprocess.TimeoutExpired:
            return f"    no end after {_SECONDS} s"
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / f"{spec.stem}.out").write_text(ran.stdout)
    if ran.returncode != 0:
        return f"    isolationtester ended with {ran.returncode}:\n{ran.stdout}"
    accepted = sorted(expected.glob(f"{spec.stem}.out")) + sorted(
        path for path in expected.glob(f"{spec.stem}_*.out") if _is_variant(path, spec)
    )
    if not accepted:
        return f"    {expected / spec.stem}.out does not exist; it printed:\n{ran.stdout}"
    differences = [
        list(
            difflib.unified_diff(
                path.read_text().splitlines(),
                ran.stdout.splitlines(),
                f"expected/{path.name}",
                "what it printed",
                lineterm="",
            )
        )
        for path in accepted
    ]
    best = min(differences, key=len)
    return "\n".join(best) if best else None


def _is_variant(path: Path, spec: Path) -> bool:
    return path.stem.removeprefix(f"{spec.stem}_").isdigit()
