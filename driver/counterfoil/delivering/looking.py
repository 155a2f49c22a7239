"""The one question that a dispatcher without work asks per poll, for all its lanes that sleep."""

from __future__ import annotations

import asyncio

from counterfoil.functions import Functions
from counterfoil.wakeups import Wakeups


class Looking:
    """Lets lanes sleep until something may be claimed in them."""

    def __init__(self, functions: Functions, *, poll_seconds: float) -> None:
        self._functions = functions
        self._poll_seconds = poll_seconds
        self._asleep: dict[str, Wakeups] = {}
        self._due: set[str] = set()
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def sleep(self, lane: str, wakeups: Wakeups) -> bool:
        """Sleep until woken; True when that is because something is due in the lane.

        Raises what the question met with.
        """
        self._asleep[lane] = wakeups
        self._due.discard(lane)
        # One that joins wants to know when it is due.
        self._changed.set()
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._look())
        try:
            await wakeups.sleep(None)
        finally:
            del self._asleep[lane]
        if self._task.done():
            self._task.result()
        return lane in self._due

    async def close(self) -> None:
        """End the looking, when no lane sleeps any more."""
        self._changed.set()
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)

    async def _look(self) -> None:
        try:
            while self._asleep:
                self._changed.clear()
                await self._ask(dict(self._asleep))
        except BaseException:
            for wakeups in self._asleep.values():
                wakeups.wake()
            raise

    async def _ask(self, asleep: dict[str, Wakeups]) -> None:
        """Ask once, wake the lanes in which something is due, and wait for the next time."""
        longest = self._poll_seconds
        for due in await self._functions.look_for_deliveries(
            list(asleep), [wakeups.listener for wakeups in asleep.values()]
        ):
            asleep[due.lane].kept()
            if due.in_seconds is None:
                continue
            if due.in_seconds <= 0:
                self._due.add(due.lane)
                asleep[due.lane].wake()
            else:
                longest = min(longest, due.in_seconds + 0.001)
        try:
            await asyncio.wait_for(self._changed.wait(), longest)
        except TimeoutError:
            return
