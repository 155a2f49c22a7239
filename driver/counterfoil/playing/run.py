"""What a play gets: `Run` for a plain function, `AsyncRun` for a coroutine.

Both offer the same. With `AsyncRun`, what may wait is awaited: `await run.step(…)`, `await
run.map(…)`, `await run.wait_for(…)`, `await run.sleep(…)`; `run.log` and `run.progress` are not.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from counterfoil.playing.base_run import BaseRun, inside_step
from counterfoil.playing.execution import in_thread
from counterfoil.playing.flows import Ask, Command, Do, Flow
from counterfoil.playing.interruptions import Interrupted


class Run(BaseRun):
    """A run for a play that is a plain function; safe to use from any of its threads."""

    _pressure_seconds = 1.0

    def step(
        self,
        name: str,
        function: Callable[..., Any],
        *args: Any,
        key: str | None = None,
        ttl: float | timedelta | None = None,
        **kwargs: Any,
    ) -> Any:
        """What ``function(*args, **kwargs)`` returns, computed once and then remembered.

        The step is known by its name and arguments within the run; with ``key`` by that key in the
        whole org, so that other runs share the result; ``ttl`` is how many seconds it is remembered
        (None: for ever). The output must be plain values, and comes
        back as JSON gives it (tuples as lists). What ``function`` raises is raised here, and the
        step is tried again by the next attempt, unless it is a ``PermanentError``.
        """
        return self._drive(self._step(name, function, args, kwargs, key, ttl))

    def map(
        self,
        name: str,
        function: Callable[[Any], Any],
        items: Iterable[Any],
        *,
        parallel: int = 8,
    ) -> list[Any]:
        """One step ``function(item)`` for each item, ``parallel`` at once, in threads.

        Outputs in the order of the items. When a step fails no further one begins; the first error
        is raised when those in hand are done.
        """
        outputs: list[Any] = self._drive(self._map(name, function, items, parallel))
        return outputs

    def wait_for(self, event: str, *, timeout: float | timedelta | None = None) -> Any:
        """Wait, without holding a worker, until the run is resumed by ``event``; its payload.

        ``timeout`` is in seconds; ``TimeoutError`` when it has passed without the event.
        """
        return _payload(event, self._perform(Ask(self._wait_for(event, timeout))))

    def sleep(self, duration: float | timedelta) -> None:
        """Wait, without holding a worker, for a number of seconds."""
        self._perform(Ask(self._sleep(duration)))

    def flush(self) -> None:
        """Send the log and the progress so far, and wait until they are stored."""
        self._perform(Ask(self._session.flush))

    def _drive(self, flow: Flow) -> Any:
        try:
            command = next(flow)
            while True:
                try:
                    answer = self._perform(command)
                except BaseException as error:  # noqa: BLE001 - the flow decides
                    command = flow.throw(error)
                else:
                    command = flow.send(answer)
        except StopIteration as end:
            return end.value

    def _perform(self, command: Command) -> Any:
        if isinstance(command, Ask):
            self._session.check()
            if command.now is not None and (answer := command.now()) is not None:
                return answer
            return asyncio.run_coroutine_threadsafe(_awaited(command.call), self._loop).result()
        if isinstance(command, Do):
            return self._call(command)
        lanes = [
            in_thread(lambda flow=flow: self._drive(flow), f"counterfoil-{self.id}")  # type: ignore[misc]
            for flow in command.flows
        ]
        return _first_error([lane.exception() for lane in lanes])

    def _call(self, do: Do) -> Any:
        token = inside_step.set(True)
        try:
            result = do.function(*do.args, **do.kwargs)
            if inspect.isawaitable(result):
                outcome, _ = self._play_loop.start(_awaited(lambda: result))
                result = outcome.result()
            return result
        finally:
            inside_step.reset(token)


class AsyncRun(BaseRun):
    """A run for a play that is a coroutine."""

    # Short: all coroutine plays of a worker wait meanwhile.
    _pressure_seconds = 0.05

    async def step(
        self,
        name: str,
        function: Callable[..., Any],
        *args: Any,
        key: str | None = None,
        ttl: float | timedelta | None = None,
        **kwargs: Any,
    ) -> Any:
        """As `Run.step`. A coroutine function is awaited, a plain one is called in a thread."""
        return await self._drive(self._step(name, function, args, kwargs, key, ttl))

    async def map(
        self,
        name: str,
        function: Callable[[Any], Any],
        items: Iterable[Any],
        *,
        parallel: int = 8,
    ) -> list[Any]:
        """As `Run.map`: one step an item, ``parallel`` at once, outputs in order."""
        outputs: list[Any] = await self._drive(self._map(name, function, items, parallel))
        return outputs

    async def wait_for(self, event: str, *, timeout: float | timedelta | None = None) -> Any:  # noqa: ASYNC109 - of the run, in the database
        """As `Run.wait_for`: the event's payload, or ``TimeoutError``."""
        return _payload(event, await self._perform(Ask(self._wait_for(event, timeout))))

    async def sleep(self, duration: float | timedelta) -> None:
        """As `Run.sleep`."""
        await self._perform(Ask(self._sleep(duration)))

    async def flush(self) -> None:
        """Send the log and the progress so far, and wait until they are stored."""
        await self._perform(Ask(self._session.flush))

    async def _drive(self, flow: Flow) -> Any:
        try:
            command = next(flow)
            while True:
                try:
                    answer = await self._perform(command)
                except BaseException as error:  # noqa: BLE001 - the flow decides
                    command = flow.throw(error)
                else:
                    command = flow.send(answer)
        except StopIteration as end:
            return end.value

    async def _perform(self, command: Command) -> Any:
        if isinstance(command, Ask):
            self._session.check()
            answer = asyncio.run_coroutine_threadsafe(_awaited(command.call), self._loop)
            return await asyncio.wrap_future(answer)
        if isinstance(command, Do):
            return await self._call(command)
        lanes = [asyncio.ensure_future(self._drive(flow)) for flow in command.flows]
        try:
            outcomes = await asyncio.gather(*lanes, return_exceptions=True)
        except asyncio.CancelledError:
            for lane in lanes:
                lane.cancel()
            await asyncio.wait(lanes)
            raise
        return _first_error([o if isinstance(o, BaseException) else None for o in outcomes])

    async def _call(self, do: Do) -> Any:
        token = inside_step.set(True)
        try:
            if inspect.iscoroutinefunction(do.function):
                return await do.function(*do.args, **do.kwargs)
            result = await asyncio.wrap_future(
                in_thread(lambda: do.function(*do.args, **do.kwargs), f"counterfoil-{self.id}")
            )
            return await result if inspect.isawaitable(result) else result
        finally:
            inside_step.reset(token)


async def _awaited(call: Callable[[], Awaitable[Any]]) -> Any:
    return await call()


def _first_error(errors: Sequence[BaseException | None]) -> None:
    """Raise an interruption if there is one among the errors, else the first error."""
    found = [error for error in errors if error is not None]
    for error in found:
        if isinstance(error, Interrupted):
            raise error
    if found:
        raise found[0]


def _payload(event: str, outcome: Mapping[str, Any]) -> Any:
    if outcome.get("timedOut"):
        raise TimeoutError(f"no event {event!r} came in time")
    return outcome.get("payload")
