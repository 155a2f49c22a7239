"""Where a dispatcher's claims begin to look for pending facts."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

_IDLE_SECONDS = 5.0
"""How often claims that find nothing look everywhere."""
_BETWEEN = 3
"""Claims from the marks between two pieces of a look back, so that delivery goes on meanwhile."""
_LONG = 0.02
"""Seconds, if that is more than two claims from the marks take: after a longer piece the next is
half as wide."""
_FIRST_PIECE = timedelta(seconds=16)
_LEAST_PIECE = timedelta(seconds=0.5)
_ALL = timedelta(days=1)
"""A piece as wide as this takes all the rest."""

Times = list[datetime | None]


class Marks:
    """How far the claims of one queue have come: a due time for each priority.

    What was delivered stays in the database's index while a snapshot is held open, and each claim
    would pass all of it again. A mark is a hint and may be lost. What lies behind it (committed
    late, or leased to somebody who died) is found by the claims that look back: all of it in one,
    or, where that takes long, piece by piece.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.times: Times = [None] * 4
        self._backs = [_Back(1.0, 3.0), _Back(15.0, 30.0), _Back(60.0, None)]
        self._looking: _Back | None = None
        self._width = _ALL
        self._since_piece = _BETWEEN
        self._began = 0.0
        self._usual = 0.0
        self._is_idle = False

    @property
    def looked_back(self) -> bool:
        """Whether the latest claim looked only at a piece of what lies behind the marks."""
        return self._looking is not None

    def start(self) -> Times:
        """From when the next claim looks at lanes, by priority; then, for a piece, up to when."""
        now = self._began = self._clock()
        for back in self._backs:
            # Much can have been delivered since the last look, by those who are busy.
            width = self._width if self._is_idle else min(self._width, _FIRST_PIECE)
            back.begin_if_due(now, self.times, width, is_idle=self._is_idle)
        self._looking = None
        self._since_piece += 1
        if self._since_piece > _BETWEEN or self._is_idle:
            # By turns, the nearest first: what came a moment too late should not wait for all the
            # rest, nor the rest for ever where claims come seldom: the nearest is always due anew.
            looking = (back for back in self._backs if back.is_looking)
            self._looking = min(looking, key=lambda back: back.looked, default=None)
        if self._looking is None:
            return self.times
        self._since_piece = 0
        return self._looking.next_piece(now)

    def learn(self, times: Sequence[datetime | None] | None, *, took_all: bool) -> None:
        """Take the marks that a claim from `start` answered with; None when it found nothing.

        ``took_all``: it took as many lanes as it could, so that there may be more where it looked.
        """
        took = self._clock() - self._began
        if self._looking is not None and took_all:
            self._looking.look_again()
        if self._looking is None:
            self._usual = took
            self._is_idle = times is None
        elif took > max(_LONG, 2 * self._usual):
            self._width = min(self._width, self._looking.narrow())
        elif self._looking.widen() >= self._width:
            # A whole look without a long piece: the next one may begin wider.
            self._width = min(self._width * 2, _ALL)
        if times is not None:
            seen = zip(self.times, times, strict=True)
            # A claim that looked back may have found only older lanes: marks go forward.
            self.times = [max(filter(None, pair), default=None) for pair in seen]


class _Back:
    """One kind of look back: every so many seconds, so far behind the marks; None: everywhere."""

    def __init__(self, every: float, seconds: float | None) -> None:
        self._every = every
        self._reach = None if seconds is None else timedelta(seconds=seconds)
        self._began = self.looked = -float("inf")
        self._upto: Times = []
        self._latest: Times = []
        self._end: Times = []
        self._width = self._piece = _ALL
        self._was_long = False

    @property
    def is_looking(self) -> bool:
        """Whether pieces are left."""
        return bool(self._upto)

    def begin_if_due(self, now: float, times: Times, width: timedelta, *, is_idle: bool) -> None:
        """Begin to look back from these marks, unless it looks already or has lately."""
        every = _IDLE_SECONDS if is_idle and self._reach is None else self._every
        if self.is_looking or now - self._began < every:
            return
        self._began = now
        if not any(times):
            return  # Claims without a mark look everywhere.
        self._upto = list(times)
        self._end = [at - self._reach if at and self._reach else None for at in times]
        self._width = width
        self._was_long = False

    def next_piece(self, now: float) -> Times:
        """From when, then up to when, the next claim looks, by priority.

        From the latest to the oldest, the last one with all the rest: also when the next look back
        is due.
        """
        self.looked = now
        self._latest = upto = self._upto
        self._piece = self._reach or _ALL
        if self._width >= self._piece or now - self._began >= self._every:
            start = self._end
        else:
            self._piece = self._width
            ends = zip(upto, self._end, strict=True)
            start = [at and max(at - self._piece, end or at - self._piece) for at, end in ends]
        self._upto = [] if start == self._end else start
        return [*start, *upto]

    def look_again(self) -> None:
        """The next piece begins where the latest did."""
        self._upto = self._latest

    def narrow(self) -> timedelta:
        """After a long piece: how wide the next one will be."""
        self._was_long = True
        self._width = max(min(self._piece, _FIRST_PIECE) / 2, _LEAST_PIECE)
        return self._width

    def widen(self) -> timedelta:
        """After a short piece; how far all reached when it was the last and none was long."""
        if self._piece >= self._width:
            self._width = min(self._width * 2, _ALL)
        return timedelta() if self.is_looking or self._was_long else self._reach or _ALL
