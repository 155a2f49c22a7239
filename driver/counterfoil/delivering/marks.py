"""Where a dispatcher's claims begin to look for pending facts."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

_BACK = ((60.0, None), (15.0, timedelta(seconds=30)), (1.0, timedelta(seconds=3)))
"""Every so many seconds a claim looks so far behind the marks; None: everywhere."""
_IDLE_SECONDS = 5.0
"""How often claims that find nothing look everywhere."""

Times = list[datetime | None]


class Marks:
    """How far the claims of one queue have come: a due time for each priority.

    What was delivered stays in the database's index while a snapshot is held open, and each claim
    would pass all of it again. A mark is a hint and may be lost. What lies behind it (committed
    late, or leased to somebody who died) is found by the claims that look back.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.times: Times = [None] * 4
        self._looked = [-float("inf")] * len(_BACK)
        self._is_idle = False

    def start(self) -> Times | None:
        """From when the next claim looks at lanes, by priority; None: at all of them."""
        now = self._clock()
        for place, (every, back) in enumerate(_BACK):
            if back is None and self._is_idle:
                every = _IDLE_SECONDS
            if now - self._looked[place] < every:
                continue
            # Who looks farther back has looked at what lies nearer, too.
            self._looked[place:] = [now] * (len(_BACK) - place)
            return None if back is None else [at and at - back for at in self.times]
        return self.times

    def learn(self, times: Sequence[datetime | None] | None) -> None:
        """Take the marks that a claim from `start` answered with; None when it found nothing."""
        self._is_idle = times is None
        if times is not None:
            seen = zip(self.times, times, strict=True)
            # A claim that looked back may have found only older lanes: marks go forward.
            self.times = [max(filter(None, pair), default=None) for pair in seen]
