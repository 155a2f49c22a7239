"""Run parts of the suite: ``python -m tests.suite pgtap isolation pytest``.

A part runs on each server that belongs to it; with ``COUNTERFOIL_TEST_DSN`` (a superuser's
connection string) it runs on that server only. The last line says how many tests passed and failed.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path

from tests.servers.throwaway import EMBEDDED, MissingServerError, ThrowawayServer
from tests.suite import gates, isolation, pgtap, pytests
from tests.suite.outcome import Outcome

DEBIAN = "15"


class Servers:
    """The servers of one run, each started when it is first asked for."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self.given = os.environ.get("COUNTERFOIL_TEST_DSN")
        self.dsn = cache(self._dsn)

    def _dsn(self, which: str) -> str:
        return self.given or self._stack.enter_context(ThrowawayServer(which)).dsn()

    def each(self, *names: str) -> tuple[str, ...]:
        """The servers to run on: those named, or the given one."""
        return ("dsn",) if self.given else names


def run_part(part: str, servers: Servers, paths: list[Path]) -> Iterator[Outcome]:
    """Run one part on each of its servers."""
    if part == "lint":
        yield gates.run()
    elif part == "pgtap":
        for which in servers.each(DEBIAN, EMBEDDED):
            yield pgtap.run(f"pgTAP on {which}", servers.dsn(which), paths)
    elif part == "isolation":
        for which in servers.each(DEBIAN):
            yield isolation.run(f"isolation on {which}", servers.dsn(which), paths)
    else:
        for which in servers.each(EMBEDDED, DEBIAN):
            # What touches no database is the same everywhere, so it runs once.
            only = "database" if which == DEBIAN else None
            yield pytests.run(f"pytest on {which}", servers.dsn(which), paths, only)


def main() -> int:
    """Run the parts asked for and print what they came to."""
    parser = argparse.ArgumentParser(prog="python -m tests.suite", description=__doc__)
    parser.add_argument("parts", nargs="+", choices=("lint", "pgtap", "isolation", "pytest"))
    parser.add_argument("--only", nargs="*", type=Path, default=[], help="files or folders")
    arguments = parser.parse_args()
    outcomes: list[Outcome] = []
    try:
        with ExitStack() as stack:
            servers = Servers(stack)
            for part in arguments.parts:
                outcomes.extend(run_part(part, servers, arguments.only))
    except MissingServerError as error:
        sys.exit(f"{error}")
    print()
    for outcome in outcomes:
        print(outcome.line())
    tests = [outcome for outcome in outcomes if outcome.is_tests]
    if tests:
        passed = sum(outcome.passed for outcome in tests)
        failed = sum(outcome.failed for outcome in tests)
        print(f"\n{passed} passed, {failed} failed", flush=True)
        if passed == 0:
            return 1
    return 1 if any(outcome.failed for outcome in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
