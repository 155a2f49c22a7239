"""One claimed attempt while this process holds it: its lease, its interruption, its calls.

Lives on the worker's event loop; `check`, `interrupt` and the log are safe from any thread.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import psycopg

from counterfoil.calls.runs import ClaimedAttempt
from counterfoil.errors import LeaseLostError, is_transient
from counterfoil.functions import Functions
from counterfoil.playing.interruptions import AttemptLost, Interrupted, RunCancelled
from counterfoil.playing.outgoing import Outgoing

log = logging.getLogger(__name__)

Answer = TypeVar("Answer")

FLUSH_SECONDS = 0.25
"""Longest time for which a log line or a progress event waits to be sent."""
_FIRST_WAIT = 0.1
_LONGEST_WAIT = 5.0


class Session:
    """What the worker knows about one attempt that it executes."""

    def __init__(
        self, functions: Functions, claimed: ClaimedAttempt, lease_seconds: int, leased_at: float
    ) -> None:
        """``leased_at`` is this process's monotonic time just before the claim was sent."""
        self.functions = functions
        self.claimed = claimed
        self.lease_seconds = lease_seconds
        self.leased_until = leased_at + lease_seconds
        self.has_ended = False
        """Whether the database has ended, or suspended, the attempt already."""
        self.goes_on_by_itself = False
        """Whether the run can be claimed again at a time, of which nobody is notified."""
        self.outgoing = Outgoing(
            claimed.attempt,
            claimed.lease_id,
            with_line_ids=claimed.context.get("runtimeLogIdentity") == "origin",
        )
        self._loop = asyncio.get_running_loop()
        self._lock = threading.Lock()
        self._interruption: type[Interrupted] | None = None
        self._interrupted = asyncio.Event()
        self._fault: BaseException | None = None
        self._on_interrupt: Callable[[], None] | None = None
        self._sending = asyncio.Lock()
        self._flush_timer: asyncio.TimerHandle | None = None
        self._flushes: set[asyncio.Task[None]] = set()
        self._unsent: list[dict[str, Any]] = []

    @property
    def interruption(self) -> type[Interrupted] | None:
        """Why the attempt is over for this process, or None while it is not."""
        return self._interruption

    @property
    def is_held(self) -> bool:
        """Whether the lease is this process's as far as it knows, and still needed."""
        return self._interruption in (None, RunCancelled) and not self.has_ended

    @property
    def label(self) -> dict[str, object]:
        """Ids for structured logs."""
        return {
            "org_id": self.claimed.org_id,
            "run_id": self.claimed.run_id,
            "attempt": self.claimed.attempt,
        }

    def check(self) -> None:
        """Raise the interruption, or the fault of something sent earlier, if there is one."""
        if self._interruption is not None:
            raise self._interruption
        if self._fault is not None:
            raise self._fault

    def interrupt(self, kind: type[Interrupted]) -> None:
        """End the attempt for this process; the first reason stays."""
        with self._lock:
            if self._interruption is not None:
                return
            self._interruption = kind
            on_interrupt = self._on_interrupt
        self._loop.call_soon_threadsafe(self._interrupted.set)
        if on_interrupt is not None:
            on_interrupt()

    def when_interrupted(self, action: Callable[[], None] | None) -> None:
        """Call ``action`` (from any thread) at the interruption, at once if it came already."""
        with self._lock:
            self._on_interrupt = action
            late = self._interruption is not None
        if late and action is not None:
            action()

    def renewed(self, sent_at: float) -> None:
        """A heartbeat sent at that monotonic time was accepted."""
        self.leased_until = sent_at + self.lease_seconds

    def lapse(self) -> None:
        """Give the attempt up when its lease must have run out, whatever the network does."""
        if time.monotonic() > self.leased_until:
            self.interrupt(AttemptLost)

    async def pause(self, seconds: float) -> None:
        """Sleep, but wake at an interruption and raise it."""
        try:
            await asyncio.wait_for(self._interrupted.wait(), seconds)
        except TimeoutError:
            return
        self.check()

    async def call(self, operation: Callable[[], Awaitable[Answer]]) -> Answer:
        """The operation's answer, repeated while the database is not available.

        Every stored function is safe to repeat. Raises the interruption when there is one, or when
        the attempt turns out to be lost; other refusals of the database as they are.
        """
        wait = _FIRST_WAIT
        while True:
            self.check()
            try:
                return await operation()
            except LeaseLostError as error:
                if error.reason == "attempt_lease_not_current":
                    self.interrupt(AttemptLost)
                    self.check()
                raise
            except psycopg.Error as error:
                if not is_transient(error):
                    raise
                log.warning(
                    "database not available, trying again",
                    extra={**self.label, "error": type(error).__name__},
                )
            await self.pause(wait)
            wait = min(wait * 2, _LONGEST_WAIT)

    async def last_call(self, operation: Callable[[], Awaitable[Answer]]) -> Answer | None:
        """As `call`, but also after an interruption: to end the attempt, or give it back.

        None when the attempt is lost, or when its lease ran out before the database answered.
        """
        wait = _FIRST_WAIT
        while time.monotonic() < self.leased_until:
            try:
                return await operation()
            except LeaseLostError:
                break
            except psycopg.Error as error:
                if not is_transient(error):
                    raise
            await asyncio.sleep(wait)
            wait = min(wait * 2, _LONGEST_WAIT)
        self.interrupt(AttemptLost)
        return None

    def flush_soon(self) -> None:
        """Send what waits within ``FLUSH_SECONDS``; safe from any thread."""
        if self._flush_timer is None:
            self._loop.call_soon_threadsafe(self._start_flush_timer)

    def _start_flush_timer(self) -> None:
        if self._flush_timer is None:
            self._flush_timer = self._loop.call_later(FLUSH_SECONDS, self._flush_now)

    def _flush_now(self) -> None:
        task = self._loop.create_task(self._flush_quietly())
        self._flushes.add(task)
        task.add_done_callback(self._flushes.discard)

    async def _flush_quietly(self) -> None:
        try:
            await self.flush()
        except Interrupted:
            pass
        except Exception as error:  # noqa: BLE001 - the play gets it at its next call
            self._fault = error

    async def flush(self) -> None:
        """Append everything that was said, in order. Raises what the database refused."""
        async with self._sending:
            self._flush_timer = None
            while facts := self._next_facts():
                try:
                    await self.call(lambda facts=facts: self._append(facts))  # type: ignore[misc]
                except Exception:
                    self._unsent = []
                    raise
                # What an interruption keeps from being sent remains for `flush_last`.
                self._unsent = []

    async def flush_last(self) -> None:
        """As `flush`, but also after an interruption, without complaint, and for good."""
        self.outgoing.close()
        async with self._sending:
            while facts := self._next_facts():
                self._unsent = []
                try:
                    await self.last_call(lambda facts=facts: self._append(facts))  # type: ignore[misc]
                except psycopg.Error as error:
                    log.warning(
                        "what a play said was refused",
                        extra=self.label | {"error": type(error).__name__},
                    )

    def _next_facts(self) -> list[dict[str, Any]]:
        self._unsent = self._unsent or self.outgoing.take()
        return self._unsent

    async def _append(self, facts: list[dict[str, object]]) -> None:
        at = self.claimed
        await self.functions.append_facts(at.org_id, at.run_id, facts, at.attempt, at.lease_id)
