"""What `Run` and `AsyncRun` have in common: who the run is, what it says, and its flows."""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextvars import ContextVar
from datetime import timedelta
from typing import Any, ClassVar

from counterfoil.playing.execution import PlayLoop
from counterfoil.playing.flows import Flow, many_steps, one_step
from counterfoil.playing.outgoing import MAX_WAITING
from counterfoil.playing.session import Session
from counterfoil.playing.steps import Steps
from counterfoil.playing.waits import wait

inside_step: ContextVar[bool] = ContextVar("counterfoil_inside_step", default=False)
"""Whether the code runs inside a step of a play."""

current_run: ContextVar[BaseRun | None] = ContextVar("counterfoil_current_run", default=None)
"""The run whose play the code belongs to."""


class BaseRun:
    """The run as its play sees it."""

    _pressure_seconds: ClassVar[float]
    """How long a line may wait, when too many do, until some have been stored."""

    def __init__(
        self,
        session: Session,
        steps: Steps,
        loop: asyncio.AbstractEventLoop,
        play_loop: PlayLoop,
    ) -> None:
        self._session = session
        self._steps = steps
        self._loop = loop
        self._play_loop = play_loop

    @property
    def id(self) -> str:
        """The run's id, unique in its org."""
        return self._session.claimed.run_id

    @property
    def org_id(self) -> str:
        """The org (tenant) that the run belongs to."""
        return self._session.claimed.org_id

    @property
    def play(self) -> str:
        """Name of the play."""
        return self._session.claimed.play_name

    @property
    def attempt(self) -> int:
        """Number of this attempt: 1, 2, …"""
        return self._session.claimed.attempt

    @property
    def input(self) -> Any:
        """The input as launched; None when the launch had none."""
        return self._session.claimed.launch.get("input")

    @property
    def context(self) -> Mapping[str, Any]:
        """The runner's context: ``rootRunId``, ``parentRunId``, ``maxAttempts``, …"""
        return self._session.claimed.context

    @property
    def cancelled(self) -> bool:
        """Whether the play should stop: cancelled, lost or stopping. The next call says which."""
        return self._session.interruption is not None

    def progress(self, data: Mapping[str, Any]) -> None:
        """Say how far the play is; ``data`` is a dictionary of plain values.

        Sent within a quarter of a second, in order with the log. Raises what interrupted the run.
        """
        self._session.check()
        self._session.outgoing.add_progress(data)
        self._session.flush_soon()

    def log(self, message: object, **context: Any) -> None:
        """Log a line (or several), with plain values to go with it, such as ``level="warning"``.

        Sent within a quarter of a second. Characters that PostgreSQL cannot hold become U+FFFD.
        """
        self._session.check()
        if not self.keep_line(str(message), context):
            self._session.check()

    def keep_line(self, text: str, context: Mapping[str, Any]) -> bool:
        """Keep a line to be sent soon; False when the attempt is over and it never can be.

        When too many lines wait already it waits a little itself, so that a play cannot say things
        for long faster than they are stored.
        """
        if not self._session.outgoing.add_log(text, context):
            return False
        self._session.flush_soon()
        if self._session.outgoing.waiting > MAX_WAITING and not self._is_on_workers_loop():
            flushed = asyncio.run_coroutine_threadsafe(self._session.flush(), self._loop)
            # Whatever is wrong, the play hears it from its next call.
            concurrent.futures.wait([flushed], self._pressure_seconds)
        return True

    def _is_on_workers_loop(self) -> bool:
        try:
            return asyncio.get_running_loop() is self._loop
        except RuntimeError:
            return False

    def _step(
        self,
        name: str,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        key: str | None,
        ttl: float | timedelta | None,
    ) -> Flow:
        self._session.check()
        step = self._steps.named(name, args, kwargs, key, seconds_of(ttl, "the ttl of run.step()"))
        return one_step(self._steps, step, function, args, kwargs)

    def _map(
        self, name: str, function: Callable[..., Any], items: Iterable[Any], parallel: int
    ) -> Flow:
        self._session.check()
        if parallel < 1:
            raise ValueError("run.map() runs at least 1 step at once")
        return many_steps(self._steps, name, function, list(items), parallel)

    def _wait(
        self, reason: str, event: str | None, seconds: float | None
    ) -> Callable[[], Awaitable[dict[str, Any]]]:
        self._session.check()
        if inside_step.get():
            raise RuntimeError("a step cannot wait: call run.wait_for() and run.sleep() between")
        if seconds is not None and seconds < 0:
            raise ValueError("a run cannot wait for less than 0 seconds")
        wait_id = self._steps.wait_id("sleep" if event is None else f"wait:{event[:150]}")
        after = None if seconds is None else timedelta(seconds=seconds)
        return lambda: wait(self._session, wait_id, reason, event, after)

    def _wait_for(
        self, event: str, timeout: float | timedelta | None
    ) -> Callable[[], Awaitable[dict[str, Any]]]:
        if not isinstance(event, str) or not 1 <= len(event) <= 200:
            raise ValueError("an event's name is a string of 1 to 200 characters")
        return self._wait(
            f"waits for {event}", event, seconds_of(timeout, "the timeout of run.wait_for()")
        )

    def _sleep(self, duration: float | timedelta) -> Callable[[], Awaitable[dict[str, Any]]]:
        return self._wait("sleeps", None, seconds_of(duration, "the duration of run.sleep()"))


def seconds_of(duration: float | timedelta | None, what: str) -> float | None:
    """A duration in seconds; None stays None. ValueError about ``what`` when it is none."""
    if duration is None:
        return None
    try:
        given = duration if isinstance(duration, timedelta) else timedelta(seconds=duration)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(
            f"{what} is {duration!r}; give a number of seconds or a timedelta"
        ) from None
    return given.total_seconds()
