"""Low-water marks of a dispatcher's claims: what they spare, and what they never hide for long."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from counterfoil.delivering.marks import Marks, Times
from counterfoil.functions import ClaimedFact, Functions
from tests.py.driver.scene import Scene

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def found(minutes: int) -> Times:
    """The marks of a claim that took a lane of priority 3, due so many minutes after noon."""
    return [None, None, None, NOON + timedelta(minutes=minutes)]


class Scheduled:
    """Marks on a clock of the test's own."""

    def __init__(self) -> None:
        self.now = 0.0
        self.marks = Marks(lambda: self.now)

    def back(self, minutes: int) -> float | None:
        """Seconds before the mark, at so many minutes after noon; None: everywhere."""
        start = self.marks.start()
        if start is None:
            return None
        at = start[3]
        assert at is not None
        assert start[:3] == [None] * 3
        return (NOON + timedelta(minutes=minutes) - at).total_seconds()


def test_claims_begin_at_the_mark_and_look_back_now_and_then() -> None:
    scheduled = Scheduled()
    assert scheduled.back(0) is None
    scheduled.marks.learn(found(5))
    looks = []
    for tenth in range(700):
        scheduled.now = tenth / 10
        looks.append(scheduled.back(5))
        scheduled.marks.learn(found(5))
    assert [at for at, back in enumerate(looks) if back is None] == [600]
    assert [at for at, back in enumerate(looks) if back == 30] == [150, 300, 450]
    assert [at for at, back in enumerate(looks) if back == 3] == [
        at for at in range(10, 700, 10) if at not in (150, 300, 450, 600)
    ]
    assert looks.count(0) == 700 - 69


def test_a_mark_never_goes_back() -> None:
    scheduled = Scheduled()
    scheduled.back(0)
    scheduled.marks.learn(found(5))
    scheduled.marks.learn(found(2))
    scheduled.marks.learn([NOON, None, None, None])
    assert scheduled.marks.times == [NOON, None, None, NOON + timedelta(minutes=5)]


def test_who_finds_nothing_looks_everywhere_before_long() -> None:
    scheduled = Scheduled()
    scheduled.back(0)
    scheduled.marks.learn(found(5))
    scheduled.marks.learn(None)
    scheduled.now = 4.9
    assert scheduled.back(5) is not None
    scheduled.now = 5.0
    assert scheduled.back(5) is None
    scheduled.now = 9.0
    assert scheduled.back(5) is not None
    scheduled.marks.learn(found(6))
    scheduled.now = 12.0
    assert scheduled.back(6) is not None


async def test_a_dispatcher_keeps_the_marks_of_its_claims(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    claim = Functions.claim_deliveries

    async def claiming(functions: Functions, *values: Any, **named: Any) -> list[ClaimedFact]:
        asked.append(named["marks"])
        return await claim(functions, *values, **named)

    monkeypatch.setattr(Functions, "claim_deliveries", claiming)
    await scene.start()
    async with scene.dispatching(projector=False):
        await scene.all_delivered()
        await scene.progress("p1")
        await scene.all_delivered()
        await scene.progress("p2")
        await scene.all_delivered()
    assert asked[0] is None
    # The run's first fact waited under priority 0, the others under 3.
    assert [at is not None for at in asked[-1]] == [True, False, False, True]
