"""Run parts of the suite: ``python -m tests.suite pgtap isolation pytest``.

A part runs on each server that belongs to it; with ``COUNTERFOIL_TEST_DSN`` (a superuser's
connection string) it runs on that server only. The last line says how many tests passed and failed.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache, partial
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

    def named(self, which: str) -> dict[str, str]:
        """The variable that says which server to use: the given one, or one of which kind."""
        if self.given:
            return {"COUNTERFOIL_TEST_DSN": self.given}
        return {"COUNTERFOIL_TEST_SERVER": which}

    def each(self, *names: str) -> tuple[str, ...]:
        """The servers to run on: those named, or the given one."""
        return ("dsn",) if self.given else names


def run_part(part: str, servers: Servers, paths: list[Path]) -> Iterator[Outcome]:
    """Run one part on each of its servers."""
    if part == "lint":
        yield guarded("lint (gates)", gates.run)
    elif part == "pgtap":
        for which in servers.each(DEBIAN, EMBEDDED):
            yield guarded(f"pgTAP on {which}", partial(pgtap_on, servers, which, paths))
    elif part == "isolation":
        for which in servers.each(DEBIAN, EMBEDDED):
            yield guarded(f"isolation on {which}", partial(isolation_on, servers, which, paths))
    else:
        for which in servers.each(EMBEDDED, DEBIAN):
            yield guarded(f"pytest on {which}", partial(pytest_on, servers, which, paths))


def pgtap_on(servers: Servers, which: str, paths: list[Path], name: str) -> Outcome:
    """The pgTAP files on one server."""
    return pgtap.run(name, servers.dsn(which), paths)


def isolation_on(servers: Servers, which: str, paths: list[Path], name: str) -> Outcome:
    """The isolation specs on one server."""
    return isolation.run(name, servers.dsn(which), paths)


def pytest_on(servers: Servers, which: str, paths: list[Path], name: str) -> Outcome:
    """pytest on one server. What touches no database is the same everywhere, so it runs once."""
    only = "database" if which == DEBIAN else None
    return pytests.run(name, servers.named(which), paths, only)


def guarded(name: str, run: Callable[[str], Outcome]) -> Outcome:
    """Run one part; should it break down, say why, count it as failed, and let the others run."""
    began = time.monotonic()
    try:
        return run(name)
    except MissingServerError as error:
        print(error)
    except Exception:
        traceback.print_exc()
    return Outcome(name, 0, 1, time.monotonic() - began)


def main() -> int:
    """Run the parts asked for and print what they came to."""
    parser = argparse.ArgumentParser(prog="python -m tests.suite", description=__doc__)
    parser.add_argument("parts", nargs="+", choices=("lint", "pgtap", "isolation", "pytest"))
    parser.add_argument("--only", nargs="*", type=Path, default=[], help="files or folders")
    arguments = parser.parse_args()
    outcomes: list[Outcome] = []
    with ExitStack() as stack:
        servers = Servers(stack)
        for part in arguments.parts:
            outcomes.extend(run_part(part, servers, arguments.only))
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
