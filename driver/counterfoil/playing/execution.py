"""Where plays run: plain functions in threads of their own, coroutines on a loop of their own.

Neither is the worker's event loop, so a play that blocks for a minute delays no heartbeat. The
threads are daemons: a worker that stops does not wait for a play that will not return.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any


def in_thread(function: Callable[[], Any], name: str) -> Future[Any]:
    """Run ``function`` in a thread of its own, with the caller's context variables."""
    future: Future[Any] = Future()
    future.set_running_or_notify_cancel()
    context = contextvars.copy_context()

    def work() -> None:
        try:
            result = context.run(function)
        except BaseException as error:  # noqa: BLE001 - handed to whoever waits
            future.set_exception(error)
        else:
            future.set_result(result)

    threading.Thread(target=work, name=name, daemon=True).start()
    return future


class PlayLoop:
    """An event loop in a thread of its own, for plays that are coroutines."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lock = threading.Lock()

    def start(self, coroutine: Coroutine[Any, Any, Any]) -> tuple[Future[Any], Callable[[], None]]:
        """Run ``coroutine``; gives its outcome, and what cancels it (from any thread).

        The outcome comes when the coroutine has really ended, cancelled or not.
        """
        loop = self._running()
        future: Future[Any] = Future()
        future.set_running_or_notify_cancel()
        begun: list[asyncio.Task[Any]] = []

        def begin() -> None:
            task = loop.create_task(_contained(coroutine))
            begun.append(task)
            task.add_done_callback(lambda done: _hand_over(done, future))

        def cancel() -> None:
            loop.call_soon_threadsafe(lambda: begun[0].cancel())

        loop.call_soon_threadsafe(begin)
        return future, cancel

    def stop(self) -> None:
        """Stop the loop; what still runs on it is not waited for."""
        with self._lock:
            loop, self._loop = self._loop, None
        if loop is not None:
            loop.call_soon_threadsafe(loop.stop)

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(
                    target=self._loop.run_forever, name="counterfoil-plays", daemon=True
                ).start()
            return self._loop


async def _contained(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """The coroutine, kept from ending the loop that all the others run on."""
    try:
        return await coroutine
    except (SystemExit, KeyboardInterrupt) as error:
        raise RuntimeError(f"the play raised {type(error).__name__}") from error


def _hand_over(task: asyncio.Task[Any], future: Future[Any]) -> None:
    if task.cancelled():
        future.set_exception(asyncio.CancelledError())
    elif (error := task.exception()) is not None:
        future.set_exception(error)
    else:
        future.set_result(task.result())
