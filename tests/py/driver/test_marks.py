"""Low-water marks of a dispatcher's claims: what they spare, and what they never hide for long."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from counterfoil.delivering.marks import Marks, Times
from counterfoil.delivering.search_lane import SearchLane
from counterfoil.functions import ClaimedFact, Functions
from tests.py.driver.scene import Scene

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def found(minutes: int) -> Times:
    """The marks of a claim that took a lane of priority 3, due so many minutes after noon."""
    return [None, None, None, NOON + timedelta(minutes=minutes)]


class Claims:
    """Claims on a clock of the test's own, each of so many seconds."""

    def __init__(self) -> None:
        self.now = 0.0
        self.marks = Marks(lambda: self.now)

    def claim(
        self, minutes: int | None, seconds: float = 0.001, *, took_all: bool = False
    ) -> tuple[float, float] | None:
        """Look, and find what is due so many minutes after noon, or nothing.

        Answers the piece looked at, in seconds before the mark; None: from the mark on.
        """
        mark = self.marks.times[3]
        times = self.marks.start()
        self.now += seconds
        self.marks.learn(None if minutes is None else found(minutes), took_all=took_all)
        assert self.marks.looked_back == (len(times) == 8)
        if len(times) == 4:
            assert times[3] == mark
            return None
        assert times[:3] == times[4:7] == [None] * 3
        start, upto = times[3], times[7]
        assert mark is not None
        assert upto is not None
        back = float("inf") if start is None else (mark - start).total_seconds()
        return back, (mark - upto).total_seconds()


def test_claims_begin_at_the_mark_and_look_back_now_and_then() -> None:
    claims = Claims()
    assert claims.claim(5) is None, "nothing lies behind before there is a mark"
    looks: dict[float, list[int]] = {}
    for tenth in range(740):
        claims.now = tenth / 10
        piece = claims.claim(5)
        if piece is not None:
            looks.setdefault(piece[0], []).append(round(claims.now))
    assert len(looks[float("inf")]) == 1
    assert 60 < looks[float("inf")][0] < 74
    assert looks[30.0] == [16, 31, 46, 62]
    assert 60 <= len(looks[3.0]) <= 74
    assert len(looks[16.0]) == 5, "a long look begins with a short piece"


@pytest.mark.parametrize("seconds", [0.3, 1.0, 4.0])
def test_claims_that_come_seldom_look_everywhere_too(seconds: float) -> None:
    """Slow deliveries take all places: each claim finds something, and waits for a place."""
    claims = Claims()
    looks: dict[float, list[float]] = {}
    while claims.now < 600:
        began = claims.now
        piece = claims.claim(5)
        if piece is not None:
            looks.setdefault(piece[0], []).append(began)
        claims.now = began + seconds
    for back, every in ((3.0, 1), (30.0, 15), (float("inf"), 60)):
        # Four claims to a piece, three looks that take turns, and some pieces to a look.
        longest = max(b - a for a, b in itertools.pairwise([0.0, *looks[back]]))
        assert longest < 2 * every + 24 * seconds


def test_what_takes_long_is_looked_at_piece_by_piece() -> None:
    """What was delivered takes 4 ms for each second of it, in the five minutes of a snapshot."""
    claims = Claims()
    claims.claim(5)
    pieces = []
    for step in range(20000):
        claims.now = max(claims.now, step / 100)
        mark = claims.marks.times[3]
        assert mark is not None
        times = claims.marks.start()
        seconds = 0.001
        if len(times) == 8:
            start, upto = times[3], times[7]
            assert upto is not None
            oldest = mark - timedelta(minutes=5)
            seconds += 0.004 * max(0.0, (upto - max(start or oldest, oldest)).total_seconds())
            pieces.append((start, upto, seconds))
        claims.now += seconds
        claims.marks.learn(found(5), took_all=False)
    assert max(seconds for _, _, seconds in pieces) < 0.07
    latest = {start: upto for start, upto, _ in pieces}
    assert None in latest, "a look at everything comes to its end"
    reached, steps = latest[None], 0
    while reached != mark:
        reached, steps = latest[reached], steps + 1
    assert steps > 30, "and leaves nothing out"


def test_between_two_pieces_delivery_goes_on() -> None:
    claims = Claims()
    claims.claim(5)
    claims.now = 100.0
    looks = [claims.claim(5) is not None for _ in range(12)]
    assert looks == [True, False, False, False] * 3


def test_where_a_look_back_found_all_that_it_could_take_the_next_one_looks_again() -> None:
    claims = Claims()
    claims.claim(5)
    claims.now = 2.0
    looks = []
    for took_all in (True, True, False):
        looks.append(claims.claim(4, took_all=took_all))
        for _ in range(3):
            assert claims.claim(5, took_all=True) is None, "delivery goes on meanwhile"
    assert looks == [(3.0, 0.0)] * 3
    assert [claims.claim(5) for _ in range(8)] == [None] * 8, "and then it has looked"


def test_a_piece_that_a_far_server_makes_long_stays_whole() -> None:
    claims = Claims()
    claims.claim(5, 0.1)
    for _ in range(2000):
        piece = claims.claim(5, 0.15)
        assert piece is None or piece[0] in (3, 30) or piece[0] >= 16 * 2 ** (piece[1] > 0)


def test_a_mark_never_goes_back() -> None:
    marks = Marks(lambda: 0.0)
    for times in (found(5), found(2), [NOON, None, None, None]):
        marks.start()
        marks.learn(times, took_all=False)
    assert marks.times == [NOON, None, None, NOON + timedelta(minutes=5)]


def test_who_finds_nothing_looks_everywhere_before_long() -> None:
    claims = Claims()
    claims.claim(5)
    claims.now = 2.0
    while claims.claim(None) is not None:
        pass
    claims.now = 4.9
    assert all(look is None or look[0] < 60 for look in (claims.claim(None) for _ in range(9)))
    claims.now = 10.0
    assert float("inf") in {look[0] for look in (claims.claim(None) for _ in range(4)) if look}


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
    assert asked[0] == [None] * 4
    # The run's first fact waited under priority 0, the others under 3.
    assert [at is not None for at in asked[-1][-4:]] == [True, False, False, True]


async def test_a_claim_that_took_all_it_may_is_known_whatever_it_asked_for(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    learned = []
    learn = Marks.learn

    def learning(marks: Marks, times: Times | None, *, took_all: bool) -> None:
        learned.append((times is not None, took_all))
        learn(marks, times, took_all=took_all)

    monkeypatch.setattr(Marks, "learn", learning)
    await scene.functions.set_setting("claim_batch_max", 2)
    for n in range(3):
        await scene.start(f"run{n}")
    async with scene.dispatching(concurrency=8, projector=False):
        for n in range(3):
            await scene.all_delivered(f"run{n}")
    assert learned[:2] == [(True, True), (True, False)]
    learned.clear()
    for n in range(3):
        await scene.append(f"q{n}", "runner.logs", {"searchOnly": True}, f"run{n}")
    search = SearchLane(scene.functions, "search")
    assert await search.work()
    assert await search.work()
    assert learned == [(True, True), (True, False)]
