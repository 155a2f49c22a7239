"""The gates of ``make lint`` as a part of the suite."""

from __future__ import annotations

import time

from lint.__main__ import GATES
from lint.__main__ import run as run_gates
from tests.suite.outcome import Outcome


def run(part: str) -> Outcome:
    """Run every gate."""
    began = time.monotonic()
    verdicts = run_gates(list(GATES))
    failed = sum(bool(verdict.problems) for verdict in verdicts)
    seconds = time.monotonic() - began
    return Outcome(part, len(verdicts) - failed, failed, seconds, is_tests=False)
