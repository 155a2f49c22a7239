"""A loop that looks for work, does it, and sleeps when there is none."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable

import psycopg

from counterfoil.delivering.looking import Looking
from counterfoil.errors import SchemaVersionError
from counterfoil.wakeups import Wakeups

log = logging.getLogger(__name__)

SHORTEST_PAUSE = 0.05
LONGEST_PAUSE = 5.0


class Pump:
    """Calls ``work`` until stopped; sleeps when it answers that it found nothing.

    ``work`` may set `fruitless` when what it found led nowhere, so that the same is not tried again
    at once.
    """

    def __init__(
        self,
        looking: Looking,
        wakeups: Wakeups,
        lane: str,
        work: Callable[[], Awaitable[bool]],
        *,
        poll_seconds: float,
    ) -> None:
        self._looking = looking
        self._wakeups = wakeups
        self._lane = lane
        self._work = work
        self._poll_seconds = poll_seconds
        self._pause = SHORTEST_PAUSE
        self._was_due = False
        self.stopping = asyncio.Event()
        self.fruitless = False

    def stop(self) -> None:
        """Look for no more work."""
        self.stopping.set()
        self._wakeups.wake()

    def wake(self) -> None:
        """Look again when work is next due."""
        self._wakeups.wake()

    async def run(self) -> None:
        """Work until `stop`."""
        try:
            while not self.stopping.is_set():
                await self._turn()
        finally:
            with contextlib.suppress(psycopg.Error):
                await self._wakeups.close()

    async def _turn(self) -> None:
        try:
            found = await self._work()
            if self.fruitless:
                self.fruitless = False
                await self._pause_longer()
            elif found:
                self._pause = SHORTEST_PAUSE
                self._was_due = False
                await self._wakeups.awake()
            else:
                await self._sleep()
        except SchemaVersionError:
            raise
        except psycopg.Error as error:
            log.warning(
                "cannot look for work", extra={"lane": self._lane, "error": type(error).__name__}
            )
            await self._pause_longer()

    async def _sleep(self) -> None:
        # Registered first, looked once more, then asleep: nothing falls between.
        if await self._wakeups.register():
            return
        if self._was_due:
            # Due, but somebody else has a hand on it.
            await self._pause_longer()
        else:
            self._pause = SHORTEST_PAUSE
        self._was_due = await self._looking.sleep(self._lane, self._wakeups)

    async def _pause_longer(self) -> None:
        pause, self._pause = self._pause, min(2 * self._pause, LONGEST_PAUSE, self._poll_seconds)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.stopping.wait(), pause)
