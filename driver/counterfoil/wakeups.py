"""Sleeping until there is work: LISTEN where it is allowed, and a time-out always.

A process registers as asleep, looks for work once more, and only then sleeps, so that no wake-up
falls between. Notifications are hints: everything works without them, only a poll later.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time

import psycopg
from psycopg import sql

from counterfoil.database import Database
from counterfoil.functions import Functions

log = logging.getLogger(__name__)

REGISTRATION_SECONDS = 60
"""How long one registration as a sleeper lasts."""
KEPT_SECONDS = 40
"""How long a registration lasts at least after a look for work has named it."""
_RECONNECT_SECONDS = 5.0


class Wakeups:
    """The wake-up call of one process for one queue (attempts, lifecycle or search)."""

    def __init__(self, database: Database, listener: str, queue: str, *, listen: bool) -> None:
        self._database = database
        self._functions = Functions(database)
        self._listener = listener
        self._queue = queue
        self._listen = listen
        self._wake = asyncio.Event()
        self._asleep_until = 0.0
        self._task: asyncio.Task[None] | None = None
        self._ready = asyncio.Event()
        self._channel = ""

    def wake(self) -> None:
        """End the present or the next sleep."""
        self._wake.set()

    async def register(self) -> bool:
        """Say that this process is about to sleep; True when it must look for work once more."""
        if not self._listen or time.monotonic() < self._asleep_until - REGISTRATION_SECONDS / 4:
            return False
        try:
            self._channel = await self._functions.start_listening(
                self._listener, self._queue, REGISTRATION_SECONDS
            )
        except psycopg.Error as error:
            log.warning("cannot register for wake-ups", extra={"error": type(error).__name__})
            return False
        self._asleep_until = time.monotonic() + REGISTRATION_SECONDS
        if self._task is None:
            self._task = asyncio.create_task(self._hear())
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._ready.wait(), _RECONNECT_SECONDS)
        return True

    async def awake(self) -> None:
        """Say that this process is at work: writers need not notify it."""
        if self._asleep_until:
            self._asleep_until = 0.0
            try:
                await self._functions.stop_listening(self._listener)
            except psycopg.Error as error:
                log.warning("cannot deregister", extra={"error": type(error).__name__})

    @property
    def listener(self) -> str | None:
        """The name it is registered under; None while it is not."""
        return self._listener if self._asleep_until else None

    def kept(self) -> None:
        """Say that the database has kept the registration from running out."""
        if self._asleep_until:
            self._asleep_until = max(self._asleep_until, time.monotonic() + KEPT_SECONDS)

    async def sleep(self, seconds: float | None) -> bool:
        """Sleep until woken, at most that long (None: however long); True when woken."""
        try:
            await asyncio.wait_for(self._wake.wait(), seconds)
        except TimeoutError:
            return False
        finally:
            self._wake.clear()
        return True

    async def close(self) -> None:
        """Stop listening."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        await self.awake()

    async def _hear(self) -> None:
        while True:
            try:
                connection = await self._database.connect()
                async with connection:
                    await connection.execute(
                        sql.SQL("listen {}").format(sql.Identifier(self._channel))
                    )
                    self._ready.set()
                    self._wake.set()  # what was notified while nobody listened
                    async for _ in connection.notifies():
                        self._wake.set()
            except psycopg.Error as error:
                log.warning("wake-ups interrupted", extra={"error": type(error).__name__})
            await asyncio.sleep(_RECONNECT_SECONDS)
