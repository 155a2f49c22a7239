"""The demo's exit code: 0 only when the database says that every promise was kept."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from counterfoil.demo import Demo
from counterfoil.demonstration.killing import Killing
from counterfoil.demonstration.report import Account
from counterfoil.settings import Settings

COUNTS = {
    "runs": 2,
    "attempts": 3,
    "appends": 6,
    "deliveries": 6,
    "completed": 8,
    "memoised": 3,
    "written": 8,
    "to_deliver": 8,
    "pending": 0,
    "events": 8,
    "duplicates": 0,
    "gaps": 0,
}
FINDING = {
    "name": "ink",
    "files": 1,
    "verified": 1,
    "unsigned": 0,
    "bytes": 9,
    "altered": [],
    "missing": [],
    "licence": "MIT",
}
GOOD = Account(
    statuses={"completed": 2},
    counts=COUNTS,
    differences=0,
    wrong_terminals=0,
    p50=1.0,
    p99=2.0,
    results=[{"result": FINDING}, {"result": FINDING}],
)
KILLED = Killing("worker-1", 3)


def verdict(account: Account, killing: Killing | None, folder: Path) -> tuple[int, str]:
    """(Exit code, what was shown)."""
    shown = io.StringIO()
    demo = Demo(Console(file=shown, width=120), Settings(), folder)
    demo.killing = killing
    return demo.judge(account, 2), shown.getvalue()


def test_promises_that_were_kept_end_with_0(tmp_path: Path) -> None:
    code, shown = verdict(GOOD, KILLED, tmp_path)
    assert code == 0
    assert "verified from the database" in shown
    assert "8 executed, 3 memoised" in shown


@pytest.mark.parametrize(
    ("account", "killing", "words"),
    [
        (replace(GOOD, counts=COUNTS | {"runs": 1}), KILLED, "2 launched, 1 runs found"),
        (replace(GOOD, statuses={"completed": 1, "failed": 1}), KILLED, "1 of 2 runs completed"),
        (replace(GOOD, counts=COUNTS | {"pending": 1}), KILLED, "1 facts were not delivered"),
        (replace(GOOD, counts=COUNTS | {"duplicates": 1}), KILLED, "1 duplicates"),
        (replace(GOOD, counts=COUNTS | {"gaps": 1}), KILLED, "1 gaps"),
        (replace(GOOD, differences=1), KILLED, "1 ledger events differ"),
        (replace(GOOD, wrong_terminals=1), KILLED, "1 runs have not one terminal"),
        (replace(GOOD, results=[{"result": None}]), KILLED, "a run has no result"),
        (replace(GOOD, counts=COUNTS | {"memoised": 2}), KILLED, "but only 2 were taken over"),
        (GOOD, Killing("worker-1", 0), "no unfinished run with a step done"),
        (GOOD, None, "no worker could be killed"),
    ],
)
def test_what_is_wrong_is_named_and_ends_with_1(
    account: Account, killing: Killing | None, words: str, tmp_path: Path
) -> None:
    code, shown = verdict(account, killing, tmp_path)
    assert code == 1
    assert words in shown
    assert "verified from the database" not in shown
