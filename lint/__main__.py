"""Run the gates: ``python -m lint [GATE …]``; all of them by default, two at a time."""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import psycopg

from lint import bodies, house, imports, reference, rooms
from lint.findings import Finding
from lint.sources import read_tree
from tests.servers.databases import SCHEMA, install, temporary_database
from tests.servers.throwaway import MissingServerError, ThrowawayServer

# A finding, a count that is not nought, or a text that pgspot cannot read.
_OBJECTION = re.compile(r"^PS\d+:|Errors: [1-9]|^ (?!Errors:)\S", re.MULTILINE)
ROOT = Path(__file__).parents[1]
SQL = Path("sql")
DRIVER = Path("driver/counterfoil")
PYTHON = ("driver", "tests", "lint", "benchmarks", "examples")


@dataclass(frozen=True)
class Verdict:
    """What one gate said; it let everything through when ``problems`` is empty."""

    gate: str
    problems: Sequence[str]
    seconds: float


def tool(*command: str) -> list[str]:
    """Run a ready-made linter of our environment; what it prints when it objects."""
    program = Path(sys.executable).parent / command[0]
    ran = subprocess.run(
        [program, *command[1:]],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return [] if ran.returncode == 0 else [ran.stdout.rstrip()]


def pgspot() -> list[str]:
    """pgspot over the functions that pin their search_path.

    The others are plain SQL to be inlined into callers that do (lint.house sees to that).
    """
    return pgspot_says([path for path in sorted(SQL.glob("functions/*/*.sql")) if _pins(path)])


def pgspot_says(paths: Sequence[Path]) -> list[str]:
    """What pgspot objects to in these files."""
    ran = subprocess.run(
        # PS002: nobody but the installer may create in the schema, so nothing can be foisted on
        # `create or replace`.
        [".venv-pgspot/bin/python", "lint/pgspot_run.py", "--ignore", "PS002", *paths],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    # A paragraph for each file: its name, what was found, a count.
    paragraphs = re.split(r"\n(?=\S+\.sql: )", ran.stdout)
    said = [part.strip() for part in paragraphs if _OBJECTION.search(part)]
    return said if said or ran.returncode == 0 else [ran.stdout]


def _pins(path: Path) -> bool:
    return "set search_path" in path.read_text(encoding="utf-8")


def _told(findings: Sequence[Finding]) -> list[str]:
    return [str(finding) for finding in findings]


def installed() -> list[str]:
    """The installed schema: every body, every call, and whether the reference is up to date.

    On the server of COUNTERFOIL_TEST_DSN, or else on a throwaway PostgreSQL 15.
    """
    with ExitStack() as stack:
        admin_dsn = os.environ.get("COUNTERFOIL_TEST_DSN")
        if not admin_dsn:
            admin_dsn = stack.enter_context(ThrowawayServer("15")).dsn()
        dsn = stack.enter_context(temporary_database(admin_dsn))
        install(dsn)
        said = [*reference.check(dsn), *bodies.check(dsn)]
        with psycopg.connect(dsn, autocommit=True) as connection:
            return [*said, *rooms.check_catalog(connection, SCHEMA, read_tree(SQL))]


GATES: dict[str, Callable[[], list[str]]] = {
    "sqlfluff": lambda: tool("sqlfluff", "lint", "--processes", "2", "--nocolor", str(SQL)),
    "mypy": lambda: tool("mypy"),
    "plpgsql_check and docs": installed,
    "pgspot": pgspot,
    "house rules": lambda: _told(house.check(SQL)),
    "rooms": lambda: _told(rooms.check(SQL)),
    "imports": lambda: _told(imports.check(DRIVER)),
    "squawk": lambda: tool("squawk", "sql/bootstrap.sql", "sql/migrations/*.sql"),
    "ruff check": lambda: tool("ruff", "check", *PYTHON),
    "ruff format": lambda: tool("ruff", "format", "--check", *PYTHON),
}


def run(names: Sequence[str]) -> list[Verdict]:
    """Run the gates named, two at a time, and print what each says as it comes in."""

    def one(name: str) -> Verdict:
        began = time.monotonic()
        try:
            problems = GATES[name]()
        except MissingServerError as error:
            problems = [str(error)]
        except Exception as error:  # a gate that breaks down lets nothing through
            problems = [f"the gate broke down: {type(error).__name__}: {error}"]
        return Verdict(name, problems, time.monotonic() - began)

    verdicts = []
    with ThreadPoolExecutor(2) as pool:
        for verdict in pool.map(one, names):
            word = "FAILED" if verdict.problems else "ok"
            print(f"{verdict.gate} .. {word} ({verdict.seconds:.1f} s)", flush=True)
            for problem in verdict.problems:
                print(f"    {problem}")
            verdicts.append(verdict)
    return verdicts


def main() -> int:
    """Run gates; 1 when one of them objects."""
    parser = argparse.ArgumentParser(prog="python -m lint", description=__doc__)
    parser.add_argument("gates", nargs="*", metavar="GATE", help=", ".join(GATES))
    arguments = parser.parse_args()
    unknown = set(arguments.gates) - GATES.keys()
    if unknown:
        parser.error(f"no such gate: {', '.join(sorted(unknown))}")
    os.chdir(ROOT)
    verdicts = run(arguments.gates or list(GATES))
    return 1 if any(verdict.problems for verdict in verdicts) else 0


if __name__ == "__main__":
    sys.exit(main())
