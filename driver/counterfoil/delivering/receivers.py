"""Which receivers keep their requests waiting, and how many places those may hold.

While a receiver answers, any number of a dispatcher's places may be its own. One that has let a
request wait is slow until it answers in time again: the slow ones together hold no more than a
part of the places, each an equal share of it, so that the rest is there for everybody else.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from counterfoil.authority import Authority
from counterfoil.delivering.deliveries import HeldRun
from counterfoil.errors import ReceiverError
from counterfoil.upstream import Origin, origin_of

log = logging.getLogger(__name__)

_FORGET_SECONDS = 60.0


def receiver_of(held: HeldRun) -> Origin | None:
    """The receiver that freshly claimed facts go to; None where the launch names none."""
    try:
        document = held.facts[0].dispatch_authority or {}
        return origin_of(Authority.read(held.org_id, held.run_id, document).base_url)
    except ReceiverError:
        return None


@dataclass
class _Receiver:
    places: dict[asyncio.Task[None], None] = field(default_factory=dict)
    asked: dict[object, float] = field(default_factory=dict)
    """Requests under way and when they began, the oldest first."""
    slow_at: float | None = None
    """When a request was last seen to wait; None once one was answered in time."""
    was_refused: bool = False


class Receivers:
    """Who holds the places of one dispatcher, by receiver."""

    def __init__(
        self,
        slow_places: int,
        slow_seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``slow_places``: how many the slow receivers may hold together."""
        self._slow_places = slow_places
        self._slow_seconds = slow_seconds
        self._clock = clock
        self._receivers: dict[Origin, _Receiver] = {}

    def take(self, receiver: Origin | None, task: asyncio.Task[None]) -> bool:
        """Give a delivery a place; False when its receiver is slow and has its share."""
        if receiver is None:
            return True
        state = self._receivers.setdefault(receiver, _Receiver())
        if self._is_slow(state):
            slow = self._slow()
            others = [other for other in slow if other is not state and other.places]
            share = max(1, self._slow_places // (len(others) + 1))
            held = len(state.places) + sum(len(other.places) for other in others)
            if len(state.places) >= share or held >= self._slow_places:
                if not state.was_refused:
                    state.was_refused = True
                    log.warning("a receiver keeps deliveries waiting", extra=_named(receiver))
                return False
        state.places[task] = None
        return True

    def leave(self, receiver: Origin | None, task: asyncio.Task[None]) -> None:
        """Take note that a delivery left its place, if it had one."""
        if receiver is not None and receiver in self._receivers:
            self._receivers[receiver].places.pop(task, None)
            self._forget(receiver)

    @contextmanager
    def asked(self, receiver: Origin) -> Iterator[None]:
        """Watch one request, from its start to the end of its answer."""
        state = self._receivers.setdefault(receiver, _Receiver())
        request, began = object(), self._clock()
        state.asked[request] = began
        try:
            yield
        finally:
            del state.asked[request]
            now = self._clock()
            if now - began > self._slow_seconds:
                state.slow_at = now
            elif state.slow_at is not None and not _is_cancelled():
                state.slow_at = None
                if state.was_refused:
                    state.was_refused = False
                    log.info("a receiver answers in time again", extra=_named(receiver))
            self._forget(receiver)

    def surplus(self) -> list[asyncio.Task[None]]:
        """Deliveries that slow receivers began before they were known to be slow, and have no
        share for: the latest of each."""
        holders = [state for state in self._slow() if state.places]
        share = max(1, self._slow_places // max(1, len(holders)))
        kept, over = [], []
        for state in holders:
            tasks = [task for task in state.places if not task.cancelling()]
            kept += tasks[:share]
            over += tasks[share:]
        return over + kept[self._slow_places :]

    def _slow(self) -> list[_Receiver]:
        return [state for state in self._receivers.values() if self._is_slow(state)]

    def _is_slow(self, state: _Receiver) -> bool:
        now = self._clock()
        oldest = next(iter(state.asked.values()), now)
        if now - oldest > self._slow_seconds:
            state.slow_at = now
        elif state.slow_at is not None and now - state.slow_at > _FORGET_SECONDS:
            state.slow_at = None
        return state.slow_at is not None

    def _forget(self, receiver: Origin) -> None:
        state = self._receivers[receiver]
        if not state.places and not state.asked and not self._is_slow(state):
            del self._receivers[receiver]


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _named(receiver: Origin) -> dict[str, object]:
    scheme, host, port = receiver
    return {"receiver": f"{scheme}://{host}:{port}"}
